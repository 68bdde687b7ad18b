"""What a scripted call comes to: the first outcome that fits and is not used up, else an answer."""

import msgspec

from standby.engine.reading.extract import Reply
from standby.events.facts import Usage
from standby.events.vocabulary import Origin, Stage, StopKind
from standby.hosts.providers import values as call
from standby.hosts.providers.table import PROVIDERS
from standby.hosts.providers.values import Answer, Code, Wire
from standby.hosts.reports import Failed, Succeeded, Switched
from standby.hosts.runner.effects import Claimed
from standby.hosts.scripted.failures import failure_of
from standby.hosts.scripted.replies import Dialect, Kind
from standby.hosts.scripted.replies import Reply as Scripted
from standby.hosts.simulate.scenario import Outcome, Scenario


class Outcomes:
    """The scenario's outcomes, used up as calls come."""

    def __init__(self, scenario: Scenario) -> None:
        self._start_ms = scenario.start_ms
        self._outcomes = scenario.outcomes
        self._used = [0] * len(scenario.outcomes)

    def take(self, model: str, profile: str, turn: str, now_ms: int) -> Outcome:
        """The outcome of a call that begins now."""
        since = now_ms - self._start_ms
        for at, one in enumerate(self._outcomes):
            most = _most(one)
            if (
                (most is None or self._used[at] < most)
                and one.model in ("", model)
                and one.profile in ("", profile)
                and one.turn in ("", turn)
                and since >= one.since
                and (one.until is None or since < one.until)
            ):
                self._used[at] += 1
                return one
        return Outcome()

    def missed(self) -> list[str]:
        """A sentence for each outcome that no call came to, or too few: such a scenario misses its point."""
        found = []
        for at, (one, used) in enumerate(zip(self._outcomes, self._used, strict=True)):
            most = _most(one)
            if most is not None and used < most:
                found.append(f"outcomes[{at}]: {used} of {most} calls came to it")
            elif not used:
                found.append(f"outcomes[{at}]: no call came to it")
        return found


def _most(one: Outcome) -> int | None:
    if one.times is None and one.until is not None:
        return None
    return one.times or 1


def cut_off(one: Outcome, budget_ms: int) -> Outcome:
    """A call whose outcome would come later than its time allows: nobody hears of it any more. What it may
    have done until then it may have done."""
    return Outcome(
        took=one.took.__class__(budget_ms),
        code=Code.TIMED_OUT.value,
        stream=one.stream,
        effects=one.effects,
        delivered=one.delivered,
        receipts=one.receipts,
    )


def claim(one: Outcome, model: str, now_ms: int) -> Claimed:
    """The report of a call that is over now, and the answer if it gave one."""
    if one.switch_to:
        return Claimed(Switched(model=one.switch_to, effects=one.effects))
    if not one.fails:
        return _answered(one, model)
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
            receipts=tuple(one.receipts),
            bare=one.bare,
        )
    )


def _answered(one: Outcome, model: str) -> Claimed:
    answer = Answer(
        text=f"An answer from {one.served or model}.",
        stop=one.stop if one.stop is not StopKind.INCOMPLETE else StopKind.STOP,
        usage=call.Usage(input_tokens=one.input_tokens, output_tokens=one.output_tokens),
    )
    report = Succeeded(
        effects=one.effects,
        usage=Usage(input=one.input_tokens, output=one.output_tokens),
        stop=one.stop,
        fallback_worthy=one.fallback_worthy,
        writer_admitted=one.writer_admitted,
        served=one.served,
    )
    return Claimed(report, answer)


def named_reply(model: str, kind: Kind, now_ms: int) -> Reply:
    """A failure by its name, as the model's provider words it."""
    return _reply(Outcome(kind=kind), model, now_ms)


def _reply(one: Outcome, model: str, now_ms: int) -> Reply:
    provider, _, name = model.partition("/")
    plain = Reply(
        provider=provider,
        model=name,
        stage=Stage.STREAM if one.stream else Stage.PROMPT,
        received_ms=now_ms,
    )
    if one.code:
        return msgspec.structs.replace(plain, code=one.code, origin=Origin.TRANSPORT)
    if one.kind is Kind.REFUSED:
        # Under status 200, by its finish or stop reason, once the answer had begun.
        return msgspec.structs.replace(plain, code="refusal", stage=Stage.STREAM)
    status, headers, body = one.status, dict(one.headers), one.body
    if one.kind not in (None, Kind.ANSWER):
        scripted = Scripted(kind=one.kind, dialect=_dialect(one, provider), retry_after=one.retry_after)
        known = PROVIDERS.get(provider)
        made = failure_of(
            scripted, known.wire if known is not None else Wire.OPENAI_CHAT, name, "req_PLACEHOLDER"
        )
        status = made.status if status is None else status
        headers = {**made.headers, **headers}
        body = (made.body if isinstance(made.body, str) else dict(made.body)) if body is None else body
    elif one.retry_after is not None:
        headers.setdefault("retry-after", f"{one.retry_after:g}")
    return msgspec.structs.replace(plain, status=status, headers=headers, body=body)


def _dialect(one: Outcome, provider: str) -> Dialect | None:
    """Providers whose errors are known speak their own."""
    own = next((dialect for dialect in Dialect if dialect.value == provider), None)
    return one.dialect or own
