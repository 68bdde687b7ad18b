"""`standby simulate`: play a scenario and print what was decided, by which rules."""

from pathlib import Path
from typing import Annotated, Any

import typer

from standby.engine.fold import tag_of
from standby.events.codec import decode
from standby.events.errors import BadInput
from standby.events.store import Store
from standby.hosts.cli.log import commit_value, event_text
from standby.hosts.cli.meanings import meaning
from standby.hosts.cli.output import Out, span
from standby.hosts.cli.reading import Names, Stored
from standby.hosts.core import open_store
from standby.hosts.simulate import Played, load_scenario, play
from standby.hosts.simulate.play import PlayedTurn

__all__ = ["simulate_command"]


def simulate_command(
    file: Annotated[Path, typer.Argument(help="A scenario file, TOML or JSON.")],
    log: Annotated[Path | None, typer.Option("--log", help="Keep the log here; the file must be new.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only outcomes, no decisions.")] = False,
) -> None:
    """Play a scenario on a virtual clock: the real engine, log and runner loop, without network or sleeping.

    Exit status 1 when something that the scenario expects did not happen.
    """
    loaded = load_scenario(file)
    store = _store(log)
    try:
        played = play(loaded.scenario, loaded.settings, store)
        out = Out(as_json=as_json)
        if as_json:
            out.json(_value(played))
        else:
            _show(out, played, quiet=quiet)
    finally:
        store.close()
    if played.problems:
        raise typer.Exit(1)


def _store(log: Path | None) -> Store:
    if log is not None and log.exists() and log.stat().st_size:
        raise BadInput(f"{log} exists already; name a new file for --log")
    return open_store(":memory:" if log is None else log)


def _show(out: Out, played: Played, *, quiet: bool) -> None:
    scenario, report = played.scenario, played.report
    if scenario.title:
        out.title(scenario.title)
    for line in scenario.about.strip().splitlines():
        out.line("  ", (line, "dim"))
    if not quiet:
        out.title("Decisions")
        _decisions(out, played)
    out.title("Turns")
    head = ("turn", "session", "took", "attempts", "outcome")
    out.table([_outcome(turn) for turn in played.turns], head=head)
    for turn in played.turns:
        for notice in turn.result.notices if turn.result else ():
            out.line("  ", (f"{turn.id}: ", "dim"), notice)
    if scenario.shows:
        out.title("Rules")
        out.table([(rule, meaning(rule)) for rule in scenario.shows])
    if report.holds:
        out.line(f"{report.commits} commits, {report.decisions} decisions recomputed, all agree")
    for problem in played.problems:
        out.line(("NOT AS EXPECTED  ", "bold red"), problem)


def _decisions(out: Out, played: Played) -> None:
    names = Names(played.store)
    for row in played.store.read():
        commit = decode(row.body, row.position)
        offset = f"+{(commit.at_ms - played.scenario.start_ms) / 1000:.3f}s"
        tag = tag_of(commit.fact)
        out.line(f"{offset:>12}  ", (f"{tag:<20}", "bold"), f" {event_text(commit.fact, names)}")
        for decision in commit.decisions:
            out.line(
                " " * 16,
                f"{tag_of(decision):<20} {event_text(decision, names)}  ",
                (f"[{' '.join(decision.rules)}]", "dim"),
            )


def _outcome(turn: PlayedTurn) -> tuple[str, ...]:
    state = turn.state
    session = str((turn.step.turn or {}).get("session", ""))
    if state is None:
        return (turn.id, session, "", "", "lost at a restart" if turn.lost else "unfinished")
    took = span((turn.ended_ms or 0) - state.requested_ms)
    attempts = str(len(state.attempts))
    if state.answered:
        return (turn.id, session, took, attempts, f"answered by {state.answered}")
    end = state.end.value if state.end else "?"
    reason = f", {state.reason.value}" if state.reason else ""
    return (turn.id, session, took, attempts, f"failed: {end}{reason}")


def _value(played: Played) -> dict[str, Any]:
    names = Names(played.store)
    rows = list(played.store.read())
    return {
        "title": played.scenario.title,
        "shows": played.scenario.shows,
        "turns": [_turn_value(turn) for turn in played.turns],
        "commits": [commit_value(Stored(row, decode(row.body, row.position)), names) for row in rows],
        "problems": played.problems,
        "decisions_recomputed": played.report.decisions,
        "verified": played.report.holds,
    }


def _turn_value(turn: PlayedTurn) -> dict[str, Any]:
    state = turn.state
    value: dict[str, Any] = {"id": turn.id, "lost": turn.lost, "ended_ms": turn.ended_ms}
    if state is None:
        return value
    return {
        **value,
        "answered": state.answered or None,
        "end": state.end.value if state.end else None,
        "reason": state.reason.value if state.reason else None,
        "attempts": [
            {"model": a.model, "reason": a.reason.value if a.reason else None, "check": a.check}
            for a in state.attempts
        ],
        "skips": [{"model": s.model, "because": s.because.value} for s in state.skips],
        "notices": list(turn.result.notices) if turn.result else [],
    }
