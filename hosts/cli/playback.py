"""What `standby simulate` does: play scenarios and print what was decided, by which rules.

Apart from the command itself, so that other commands start without the runner.
"""

from pathlib import Path
from typing import Any

import typer

from standby.engine.fold import tag_of
from standby.events.codec import decode
from standby.events.errors import BadInput
from standby.events.store import Store
from standby.hosts.cli.log import commit_value
from standby.hosts.cli.output import Out, span
from standby.hosts.cli.reading import Names, Stored
from standby.hosts.cli.rule_texts import rule_text
from standby.hosts.core import open_store
from standby.hosts.simulate import Loaded, Played, PlayedTurn, load_scenario, play
from standby.hosts.simulate.expect import count_of, record_line
from standby.hosts.simulate.format import Words, offset

_STYLES = {
    "answered": "green",
    "turn_failed": "red",
    "call_failed": "red",
    "block_set": "red",
    "notice": "yellow",
}


def simulate(files: list[Path], log: Path | None, *, as_json: bool, quiet: bool) -> None:
    """Play the files and print what was decided; see `simulate_command`."""
    if len(files) > 1:
        if log is not None:
            raise BadInput("--log keeps the log of one scenario; play the files one by one, each with its own")
        _several(files, as_json)
        return
    loaded = load_scenario(files[0])
    store, new = _store(log)
    try:
        played = _played(loaded, store, new)
        out = Out(as_json=as_json)
        if as_json:
            out.json(_value(played))
        else:
            _show(out, played, quiet=quiet)
    finally:
        store.close()
    if played.problems:
        raise typer.Exit(1)


def _several(files: list[Path], as_json: bool) -> None:
    """Play one file after the other: a line for each. Nothing is played when one of them cannot be read."""
    out, wrong = Out(as_json=as_json), 0
    loaded = [load_scenario(file) for file in files]
    width = max(len(str(file)) for file in files)
    for file, one in zip(files, loaded, strict=True):
        store, new = _store(None)
        try:
            played = _played(one, store, new)
            wrong += bool(played.problems)
            if as_json:
                out.json({"file": str(file), **_value(played)})
            else:
                _line(out, f"{file!s:<{width}}", played)
        finally:
            store.close()
    if not as_json:
        out.line(f"{len(files)} scenarios, {wrong or 'none'} not as expected")
    if wrong:
        raise typer.Exit(1)


def _line(out: Out, file: str, played: Played) -> None:
    turns = f"{len(played.turns)} turn" + ("" if len(played.turns) == 1 else "s")
    lead = f"{file}  {turns:<8}  "
    title = played.loaded.scenario.title
    about = f"  {title}" if title else ""
    if played.problems:
        out.line(lead, ("NOT AS EXPECTED", "bold red"), f"{about}: {'; '.join(played.problems)}")
    elif count_of(played.loaded.scenario):
        out.line(lead, ("as expected", "green"), about)
    else:
        out.line(lead, "expects nothing", about)


def _store(log: Path | None) -> tuple[Store, Path | None]:
    """Where the log goes, and the file that is made for it."""
    if log is None:
        return open_store(":memory:"), None
    if log.exists():
        raise BadInput(f"{log} exists already; name a new file for --log")
    if not log.absolute().parent.is_dir():
        raise BadInput(f"{log}: there is no folder {log.parent}; make it first")
    return open_store(log), log


def _played(loaded: Loaded, store: Store, new: Path | None) -> Played:
    """Play it; half a log of a scenario that cannot be played is of no use to anybody."""
    try:
        return play(loaded, store)
    except BaseException:
        store.close()
        if new is not None:
            for file in (new, *(new.with_name(new.name + end) for end in ("-wal", "-shm"))):
                file.unlink(missing_ok=True)
        raise


# ---- for people ----------------------------------------------------------------------------------------------


def _show(out: Out, played: Played, *, quiet: bool) -> None:
    scenario, report = played.loaded.scenario, played.report
    if scenario.title:
        out.title(scenario.title)
    for line in scenario.about.strip().splitlines():
        out.line("  ", (line, "dim"))
    if not quiet:
        out.title("Decisions")
        _decisions(out, played)
    if played.turns:
        out.title("Turns")
        head = ("turn", "session", "took", "attempts", "outcome")
        out.table([_outcome(turn) for turn in played.turns], head=head)
    for turn in played.turns:
        for notice in turn.result.notices if turn.result else ():
            out.line("  ", (f"{turn.id}: ", "dim"), notice)
        if turn.failure is not None:
            out.line("  ", (f"{turn.id}: ", "dim"), str(turn.failure))
    if scenario.shows:
        out.title("Rules")
        out.table([(rule, rule_text(rule)) for rule in scenario.shows])
    expected = count_of(scenario)
    if report.holds:
        out.line(f"{report.commits} commits, {report.decisions} decisions recomputed, all agree")
    if expected and not played.problems:
        out.line((f"everything is as expected ({expected})", "green"))
    for problem in played.problems:
        out.line(("NOT AS EXPECTED  ", "bold red"), problem)


def _decisions(out: Out, played: Played) -> None:
    words = Words(Names(played.store), played.loaded.scenario.start_ms)
    width = max([4, *(len(turn.id) for turn in played.turns)])
    several = len({decode(row.body, row.position).runtime for row in played.store.read()}) > 1
    for row in played.store.read():
        commit = decode(row.body, row.position)
        when = offset(commit.at_ms - played.loaded.scenario.start_ms)
        turn = getattr(commit.fact, "turn", "")
        who = f"{commit.runtime:<6}  " if several else ""
        lead = f"{when:>12}  {who}{turn:<{width}}  "
        tag = tag_of(commit.fact)
        out.line((lead, "dim"), (f"{tag:<20}", f"bold {_style(tag)}".strip()), f" {words.of(commit.fact)}")
        for decision in commit.decisions:
            tag = tag_of(decision)
            out.line(
                " " * (len(lead) + 2),
                (f"{tag:<18}", _style(tag)),
                f" {words.of(decision)}  ",
                (f"[{' '.join(decision.rules)}]", "dim"),
            )


def _style(tag: str) -> str:
    return next((style for part, style in _STYLES.items() if part in tag), "")


def _outcome(turn: PlayedTurn) -> tuple[str, ...]:
    state, session = turn.state, turn.step.turn.session if turn.step.turn else ""
    attempts = str(len(state.attempts))
    if turn.ended_ms is None:
        return (turn.id, session, "-", attempts, f"not over: {state.state}")
    took = span(turn.ended_ms - state.requested_ms)
    if state.answered:
        return (turn.id, session, took, attempts, f"answered by {state.answered}")
    end = state.end.value if state.end else "?"
    reason = f", {state.reason.value}" if state.reason else ""
    return (turn.id, session, took, attempts, f"failed: {end}{reason}")


# ---- for machines --------------------------------------------------------------------------------------------


def _value(played: Played) -> dict[str, Any]:
    names, scenario = Names(played.store), played.loaded.scenario
    rows = list(played.store.read())
    return {
        "title": scenario.title,
        "shows": scenario.shows,
        "start_ms": scenario.start_ms,
        "turns": [_turn_value(turn) for turn in played.turns],
        "commits": [commit_value(Stored(row, decode(row.body, row.position)), names) for row in rows],
        "problems": played.problems,
        "decisions_recomputed": played.report.decisions,
        "verified": played.report.holds,
    }


def _turn_value(turn: PlayedTurn) -> dict[str, Any]:
    state, result = turn.state, turn.result
    return {
        "id": turn.id,
        "state": state.state,
        "requested_ms": state.requested_ms,
        "ended_ms": turn.ended_ms,
        "selected": state.selected,
        "answered": state.answered or None,
        "end": state.end.value if state.end else None,
        "reason": state.reason.value if state.reason else None,
        "attempts": [
            {
                "model": one.model,
                "profile": profile or None,
                "reason": one.reason.value if one.reason else None,
                "probe": one.probe,
            }
            for one, profile in zip(state.attempts, turn.profiles, strict=True)
        ],
        "skips": [{"model": s.model, "because": s.because.value, "until_ms": s.until_ms} for s in state.skips],
        "notices": list(result.notices) if result else [],
        "message": str(turn.failure) if turn.failure else None,
        "statuses": turn.statuses,
        "records": [record_line(step) for step in turn.records],
        "soonest_ms": state.soonest_ms,
        "soonest_model": state.soonest_model or None,
        "cost": str(result.usage.cost) if result and result.usage.cost is not None else None,
    }
