"""What a scripted call comes to: the first outcome that fits and is not used up, else an answer."""

from standby.engine.evidence import Reply
from standby.events.facts import Usage
from standby.events.vocabulary import Origin, Stage, StopKind
from standby.hosts.providers import values as call
from standby.hosts.providers.table import PROVIDERS
from standby.hosts.providers.values import Answer, Wire
from standby.hosts.runner.effects import Claimed
from standby.hosts.scripted.failures import failure_of
from standby.hosts.scripted.replies import Reply as Scripted
from standby.hosts.service import Failed, Succeeded, Switched
from standby.hosts.simulate.scenario import Outcome, Scenario, duration_ms

__all__ = ["Outcomes", "claim"]


class Outcomes:
    """The scenario's outcomes, used up as calls come."""

    def __init__(self, scenario: Scenario) -> None:
        self._start_ms = scenario.start_ms
        self._left = [
            (one, one.times if one.times is not None else (None if one.until is not None else 1))
            for one in scenario.outcomes
        ]

    def take(self, model: str, profile: str, turn: str, now_ms: int) -> Outcome:
        """The outcome of a call that begins now."""
        since = now_ms - self._start_ms
        for at, (one, left) in enumerate(self._left):
            fits = (
                left != 0
                and one.model in ("", model)
                and one.profile in ("", profile)
                and one.turn in ("", turn)
                and since >= duration_ms(one.since)
                and (one.until is None or since < duration_ms(one.until))
            )
            if fits:
                if left is not None:
                    self._left[at] = (one, left - 1)
                return one
        return Outcome()

    def unused(self) -> list[Outcome]:
        """Outcomes that no call came to, so that a scenario that misses its point is noticed."""
        return [one for one, left in self._left if left is not None and left > 0]


def claim(one: Outcome, model: str, now_ms: int) -> Claimed:
    """The report of a call that is over now, and the answer if it gave one."""
    usage = Usage(input=one.input_tokens, output=one.output_tokens)
    if one.switch_to:
        return Claimed(Switched(model=one.switch_to, effects=one.effects))
    if not one.fails:
        answer = Answer(
            text=f"An answer from {model}.",
            stop=one.stop if one.stop is not StopKind.INCOMPLETE else StopKind.STOP,
            usage=call.Usage(input_tokens=one.input_tokens, output_tokens=one.output_tokens),
        )
        report = Succeeded(
            effects=one.effects,
            usage=usage,
            stop=one.stop,
            fallback_worthy=one.fallback_worthy,
            writer_admitted=one.writer_admitted,
        )
        return Claimed(report, answer)
    return Claimed(
        Failed(
            reply=_reply(one, model, now_ms),
            effects=one.effects,
            delivered=one.delivered,
            received_ms=now_ms,
            repairable=one.repairable,
            format_repair=one.format_repair,
            finished_work=one.finished_work,
            selected_profile=one.selected_profile,
            provider_started=one.provider_started,
        )
    )


def _reply(one: Outcome, model: str, now_ms: int) -> Reply:
    provider, _, name = model.partition("/")
    stage = Stage.STREAM if one.stream else Stage.PROMPT
    if one.code:
        return Reply(
            provider=provider,
            model=name,
            code=one.code,
            origin=Origin.TRANSPORT,
            stage=stage,
            received_ms=now_ms,
        )
    status, headers, body = one.status, dict(one.headers), one.body
    if one.kind is not None:
        known = PROVIDERS.get(provider)
        wire = known.wire if known is not None else Wire.OPENAI_CHAT
        scripted = Scripted(kind=one.kind, dialect=one.dialect, retry_after=one.retry_after)
        made = failure_of(scripted, wire, name, "req_PLACEHOLDER")
        status = made.status if status is None else status
        headers = {**made.headers, **headers}
        body = made.body if body is None else body  # type: ignore[assignment]  # a mapping reads like a dict
    elif one.retry_after is not None:
        headers.setdefault("retry-after", f"{one.retry_after:g}")
    return Reply(
        provider=provider,
        model=name,
        status=status,
        headers=headers,
        body=body,
        stage=stage,
        received_ms=now_ms,
    )
