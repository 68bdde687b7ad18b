"""From what a call came to, to what is reported of it; and from a settled turn to what its caller gets."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from standby.engine.reading.extract import Reply, read
from standby.engine.steps import Settled
from standby.engine.texts.failures import failure_message
from standby.engine.turn import Attempt, Turn
from standby.events.errors import AttemptFailed, TurnFailed
from standby.events.facts import Usage
from standby.events.vocabulary import Effects, Origin, Stage, StopKind, TurnEnd
from standby.hosts.providers import values as call
from standby.hosts.reports import Failed, Succeeded
from standby.projections.costs import TurnUsage


@cache
def get_ready_to_read() -> None:
    """Build the tables that failures are read with, once in a process. That takes hundredths of a second, which
    nobody should spend under the log's write lock."""
    read(Reply(status=500))


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResult:
    """An answered turn."""

    answer: call.Answer = field(repr=False)
    """Text, tool calls and the provider's ids. Tools are the caller's to run."""
    settled: Settled
    """The record of the turn: which model answered, every attempt and every skip."""
    notices: tuple[str, ...] = ()
    """What the user is to be told about the answering model (NOTE-1, NOTE-9); none in groups and channels."""
    usage: TurnUsage

    @property
    def turn(self) -> str:
        """Id of the turn."""
        return self.settled.turn

    @property
    def text(self) -> str:
        """The text of the answer."""
        return self.answer.text

    @property
    def tool_calls(self) -> tuple[Mapping[str, Any], ...]:
        """The tool calls of the answer, in the form of an assistant message's `tool_calls`."""
        return self.answer.tool_calls

    @property
    def stop(self) -> StopKind:
        """How the answer ended."""
        return self.answer.stop


def succeeded(outcome: call.CallSucceeded, *, at_work: bool) -> Succeeded:
    """The report of an answer; `at_work` says that the provider may have run tools."""
    return Succeeded(
        effects=Effects.POSSIBLE if at_work else Effects.NONE,
        usage=_usage(outcome.answer.usage),
        stop=outcome.answer.stop,
    )


def failed(
    outcome: call.CallFailed, *, at_work: bool, secrets: tuple[str, ...], now_ms: int, repairs: bool
) -> Failed:
    """The report of a failure.

    Output that reached the caller makes it unsafe to replay (REC-8). So does a provider that may have run
    tools, unless it refused the request outright.
    """
    refused = outcome.status is not None or outcome.origin is Origin.LOCAL
    return Failed(
        reply=Reply(
            provider=outcome.provider,
            model=outcome.model,
            status=outcome.status,
            code=outcome.code or None,
            error_type=outcome.error_type or None,
            headers=outcome.headers,
            body=outcome.body or None,
            message=outcome.message or None,
            origin=outcome.origin,
            stage=outcome.stage,
            received_ms=now_ms,
        ),
        effects=Effects.POSSIBLE if at_work and not refused else Effects.NONE,
        delivered=outcome.delivered,
        received_ms=now_ms,
        provider_started=outcome.origin is not Origin.LOCAL,
        usage=_usage(outcome.usage),
        repairable=repairs,
        format_repair=repairs,
        secrets=secrets,
    )


def failed_here(code: str, message: str, now_ms: int) -> Failed:
    """The report of an attempt that never left this host. It says nothing about anybody's health (COOL-23)."""
    return Failed(
        reply=Reply(code=code, message=message, origin=Origin.LOCAL, stage=Stage.PROMPT, received_ms=now_ms),
        received_ms=now_ms,
        provider_started=False,
        selected_profile=False,
    )


def _usage(counted: call.Usage | None) -> Usage | None:
    if counted is None:
        return None
    return Usage(input=counted.input_tokens, output=counted.output_tokens, cached=counted.cached_tokens)


_ENDS: Final[Mapping[TurnEnd, str]] = {
    TurnEnd.CANCELLED: "The turn was cancelled.",
    TurnEnd.DEADLINE: "⚠️ The time for this turn is up; no answer came before its deadline.",
    TurnEnd.UNSAFE: "⚠️ The answer broke off. It was not asked for again, since part of it had taken effect.",
}


def failure_of(settled: Settled, turn: Turn, now_ms: int) -> TurnFailed:
    """The exception of a turn that failed, with the first failure as its cause (OURS-9)."""
    message = _ENDS.get(settled.end) if settled.end is not None else None
    error = TurnFailed(message or failure_message(turn, now_ms), settled)
    first = next((a for a in settled.attempts if a.reason is not None), None)
    error.__cause__ = None if first is None else AttemptFailed(_sentence(first), first)
    return error


def _sentence(attempt: Attempt) -> str:
    reason = "" if attempt.reason is None else attempt.reason.value
    status = f", HTTP {attempt.status}" if attempt.status is not None else ""
    return f"attempt {attempt.attempt} at {attempt.model} failed: {reason}{status}"
