"""`standby verify` and `standby head`: the log proves itself, and where it ends can be kept elsewhere."""

from typing import Annotated, Any

import msgspec
import typer

from standby.engine.checkpoint import VERSION, dump
from standby.engine.verify import Report, verify
from standby.events.sqlite import SQLiteStore
from standby.events.store import Head
from standby.hosts.cli.options import AsJson, LogPath, open_log, parse_head
from standby.hosts.cli.output import Out, remark, working


def head_command(log: LogPath = None, as_json: AsJson = False) -> None:
    """Print POSITION:HASH of the last commit. Keep it elsewhere: `verify --head` then sees a cut-off tail."""
    store = open_log(log)
    try:
        head = store.head()
    finally:
        store.close()
    if as_json:
        Out().json({"position": head.position, "hash": head.hash.hex()})
    else:
        Out().line(f"{head.position}:{head.hash.hex()}")


def verify_command(
    log: LogPath = None,
    head: Annotated[
        str | None, typer.Option("--head", help="POSITION:HASH that was kept elsewhere; the log must hold it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check the chain and the turn table, recompute every decision from the facts. Exit 2 if refused."""
    kept = None if head is None else parse_head(head)
    store = open_log(log)
    try:
        report, notes = _verified(store, kept)
    finally:
        store.close()
    out = Out()
    if as_json:
        out.json(_value(report, notes, str(store.path), kept))
    else:
        _print(out, report, notes, str(store.path), kept)
    if not report.holds:
        remark(f"standby: the log is refused at position {report.refused_at}: {_problem(report)}")
        raise typer.Exit(2)


def _verified(store: SQLiteStore, kept: Head | None) -> tuple[Report, str]:
    """The report, and what is to be said about the checkpoint."""
    checkpoint = store.checkpoint()
    ours = checkpoint is not None and checkpoint.version == VERSION
    with working("verifying", store.head().position) as steps:
        report = verify(
            store.read(),
            side_entry=store.side_entry,
            side_entries=store.side_entries(),
            checkpoint=checkpoint if ours else None,
            encode_view=dump,
            head=kept,
            progress=steps.at,
        )
    if checkpoint is None:
        return report, "none"
    if not ours:
        return report, f"at position {checkpoint.position}, of another version: not used"
    return report, f"at position {checkpoint.position}, is what the log gives" if report.holds else ""


def _problem(report: Report) -> str:
    """What is wrong, for a sentence that has named the position already."""
    lead, problem = f"position {report.refused_at}", report.problem
    while problem.startswith(f"{lead}: "):
        problem = problem.removeprefix(f"{lead}: ")
    return f"it {problem.removeprefix(f'{lead} ')}" if problem.startswith(f"{lead} ") else problem


def _value(report: Report, checkpoint: str, path: str, kept: Head | None) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(report, builtin_types=(bytes,))
    plain.pop("head")
    return {
        "log": path,
        "holds": report.holds,
        **plain,
        "head": {"position": report.head.position, "hash": report.head.hash.hex()},
        "kept_head": None if kept is None else {"position": kept.position, "hash": kept.hash.hex()},
        "checkpoint": checkpoint,
    }


def _print(out: Out, report: Report, checkpoint: str, path: str, kept: Head | None) -> None:
    out.line("log         ", path)
    out.line("commits     ", f"{report.commits}, each one fact with the decisions that follow from it")
    if not report.holds:
        out.line("decisions   ", f"{report.decisions} recomputed and agreeing before the refusal")
        out.line("verdict     ", ("refused", "bold red"), f" at position {report.refused_at}")
        return
    out.line("chain       ", f"unbroken, positions 1 to {report.head.position}" if report.commits else "empty")
    out.line("decisions   ", f"{report.decisions} recomputed from the facts, all agree")
    gaps = report.not_provable
    out.line("proved      ", f"{report.proved} of {report.commits} commits")
    if gaps:
        where = ", ".join(map(str, gaps[:20])) + (f" and {len(gaps) - 20} more" if len(gaps) > 20 else "")
        out.line("not provable", f" {len(gaps)}, their evidence was erased: position {where}")
    out.line("checkpoint  ", checkpoint)
    out.line("head        ", f"{report.head.position}:{report.head.hash.hex()}")
    if kept is not None:
        out.line("kept head   ", f"position {kept.position} is in the log, nothing was cut off before it")
    out.line("verdict     ", ("holds", "bold green"))
