"""The log as lines for people: what each event of a commit comes to, and how it stands out.

One function for each type of event that is worth a line; all others are passed over, `notice_due` and
`turn_answered` among them, since notice and answer are shown as they reached the user.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from standby.events import decisions as d
from standby.events.commit import Commit
from standby.hosts.cli.output import span

Name = Callable[[str], str]
"""Gives the name behind an alias."""


class Line(NamedTuple):
    """One line of the timeline."""

    word: str
    style: str
    text: str
    rules: tuple[str, ...] = ()


def lines_of(commit: Commit, name: Name) -> Iterator[tuple[Any, Line]]:
    """The decisions of a commit that are worth a line, each with it."""
    for decision in commit.decisions:
        tell = _TELLERS.get(type(decision))
        if tell is not None:
            yield decision, tell(decision, commit, name)


def _started(one: d.AttemptStarted, commit: Commit, name: Name) -> Line:
    profile = f" with {name(one.profile)}" if one.profile else ""
    check = ", as a check" if one.probe else ""
    return Line("call", "cyan", f"{one.model}{profile} (attempt {one.attempt}{check})", one.rules)


def _classified(one: d.FailureClassified, commit: Commit, name: Name) -> Line:
    status = f", HTTP {one.status}" if one.status else ""
    asks = f"; the provider asks for {span(one.retry_after_ms)}" if one.retry_after_ms is not None else ""
    safe = "" if one.replayable else "; it must not be replayed"
    return Line("failed", "red", f"{one.reason.value}{status}{asks}{safe}", one.rules)


def _retry(one: d.RetryScheduled, commit: Commit, name: Name) -> Line:
    wait = span(max(0, one.until_ms - commit.at_ms))
    return Line("wait", "yellow", f"{wait}, then try {one.retry + 1} of {one.of + 1}", one.rules)


def _advanced(one: d.ChainAdvanced, commit: Commit, name: Name) -> Line:
    return Line("go on", "magenta", f"to {one.model}, away from {one.after}", one.rules)


def _skipped(one: d.CandidateSkipped, commit: Commit, name: Name) -> Line:
    until = "" if one.until_ms is None else f", for {span(max(0, one.until_ms - commit.at_ms))} more"
    reason = "" if one.reason is None else f" ({one.reason.value}{until})"
    return Line("skip", "magenta", f"{one.model}: {one.because.value}{reason}", one.rules)


def _blocked(one: d.BlockSet, commit: Commit, name: Name) -> Line:
    scope = f" for {one.model}" if one.model else ""
    left = span(max(0, one.until_ms - commit.at_ms))
    return Line("block", "red", f"{name(one.profile)}{scope}: {one.reason.value}, {left}", one.rules)


def _cleared(one: d.BlockCleared, commit: Commit, name: Name) -> Line:
    return Line("unblock", "green", f"{name(one.profile)}: it works again", one.rules)


def _pinned(one: d.PinSet, commit: Commit, name: Name) -> Line:
    return Line("pin", "blue", f"this session keeps to {name(one.profile)}", one.rules)


def _sticky(one: d.StickySet, commit: Commit, name: Name) -> Line:
    left = span(max(0, one.until_ms - commit.at_ms))
    return Line("stick", "blue", f"next turns try {one.model} first, for {left}", one.rules)


def _unstuck(one: d.StickyEnded, commit: Commit, name: Name) -> Line:
    return Line("unstick", "blue", f"turns start at the selected model again, not at {one.model}", one.rules)


_TELLERS: dict[type, Callable[[Any, Commit, Name], Line]] = {
    d.AttemptStarted: _started,
    d.FailureClassified: _classified,
    d.RetryScheduled: _retry,
    d.ChainAdvanced: _advanced,
    d.CandidateSkipped: _skipped,
    d.BlockSet: _blocked,
    d.BlockCleared: _cleared,
    d.PinSet: _pinned,
    d.StickySet: _sticky,
    d.StickyEnded: _unstuck,
}
