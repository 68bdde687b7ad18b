"""The story of a turn as a plain value: what `standby explain` says, before it is laid out.

Everything in it is looked up in the log: attempts and skips in order, what each decision rests on, the rules
that it names, what the user was told. Nothing is decided anew.
"""

from typing import Any

import msgspec

from standby.engine.fold import tag_of
from standby.engine.texts.failures import failure_message
from standby.engine.texts.notices import notice_text
from standby.engine.turn import Attempt, Skip, Turn
from standby.events import decisions as d
from standby.events import facts as f
from standby.hosts.cli.reading import Names
from standby.hosts.cli.rule_texts import rule_text
from standby.projections.history import AttemptRecord, TurnHistory

_COURSE = (d.AttemptStarted, d.FailureClassified, d.TurnAnswered, d.TurnFailed, d.NoticeDue)
"""Decisions that have a place of their own in the story."""


def story_of(history: TurnHistory, names: Names) -> dict[str, Any]:
    """The whole story, for JSON and for people."""
    request, planned = history.request, history.planned
    steps: list[dict[str, Any]] = []
    rules: dict[str, None] = {}
    for happened in history.events:
        steps += _step(history, happened.position, happened.at_ms, happened.event, names)
        for rule in getattr(happened.event, "rules", ()):
            rules[rule] = None
    return {
        "turn": history.turn,
        "session": names.session(request.session),
        "agent": request.agent,
        "kind": request.kind.value,
        "surface": request.surface.value,
        "position": history.position,
        "requested_ms": history.requested_ms,
        "runtime": history.runtime,
        "selected": planned.selected if planned else "",
        "source": planned.source.value if planned else None,
        "strict": planned.strict if planned else False,
        "chain": [{"model": c.model, "origin": c.origin} for c in planned.candidates] if planned else [],
        "chain_rules": list(planned.rules) if planned else [],
        "steps": steps,
        **_end(history),
        "told": _told(history, names),
        "why": _why(history, names),
        "rules": {rule: rule_text(rule) for rule in rules},
    }


# ---- steps ---------------------------------------------------------------------------------------------


def _step(history: TurnHistory, position: int, at_ms: int, event: Any, names: Names) -> list[dict[str, Any]]:
    base = {"position": position, "at_ms": at_ms, "what": tag_of(event)}
    if hasattr(event, "rules"):
        base["rules"] = list(event.rules)
    match event:
        case d.ChainPlanned() | f.TurnRequested():
            return []
        case d.AttemptStarted():
            return [{**base, **_started(history, event, names)}]
        case f.CallFailed():
            return [{**base, **_failed(history, position, event, names)}]
        case f.CallSucceeded():
            attempt = _attempt(history, event.attempt)
            return [{
                **base,
                "attempt": event.attempt,
                "model": attempt.decided.model if attempt else "",
                "took_ms": at_ms - attempt.started_ms if attempt else None,
                "effects": event.effects.value,
                "stop": event.stop.value,
                "usage": msgspec.to_builtins(event.usage) if event.usage else None,
            }]  # fmt: skip
        case d.FailureClassified():
            return [{**base, **_classified(event)}]
        case _:
            plain = names.replaced(msgspec.to_builtins(event))
            said = {key: one for key, one in plain.items() if key not in ("type", "turn", "rules")}
            return [{**base, **said}]


def _attempt(history: TurnHistory, number: int) -> AttemptRecord | None:
    return history.attempts[number - 1] if 0 < number <= len(history.attempts) else None


def _started(history: TurnHistory, event: d.AttemptStarted, names: Names) -> dict[str, Any]:
    return {
        "attempt": event.attempt,
        "of_chain": event.index + 1,
        "model": event.model,
        "profile": names.of(event.profile) if event.profile else "",
        "probe": event.probe,
        "continuation": event.continuation,
        "timeout_ms": event.timeout_ms,
    }


def _failed(history: TurnHistory, position: int, event: f.CallFailed, names: Names) -> dict[str, Any]:
    evidence = event.evidence
    attempt = _attempt(history, event.attempt)
    return {
        "attempt": event.attempt,
        "model": attempt.decided.model if attempt else evidence.model,
        "took_ms": event.received_ms - event.started_ms,
        "kept": attempt is None or attempt.ended_at != position,
        "status": evidence.status,
        "code": evidence.code,
        "error_type": evidence.error_type,
        "origin": evidence.origin.value,
        "stage": evidence.stage.value,
        "said": names.get(evidence.text) if evidence.text else None,
        "text_erased": bool(evidence.text) and names.get(evidence.text) is None,
        "matched": list(evidence.hits),
        "waits": [
            {"from": wait.name or wait.source.value, "wait_ms": wait.ms, "ignored": wait.ignored}
            for wait in evidence.waits
        ],
        "effects": event.effects.value,
        "delivered": event.delivered,
    }


def _classified(event: d.FailureClassified) -> dict[str, Any]:
    return {
        "attempt": event.attempt,
        "reason": event.reason.value,
        "row": event.row,
        "lost": list(event.also),
        "status": event.status,
        "retry_after_ms": event.retry_after_ms,
        "wait_source": event.wait_source.value if event.wait_source else None,
        "replayable": event.replayable,
    }


# ---- the end -------------------------------------------------------------------------------------------


def _end(history: TurnHistory) -> dict[str, Any]:
    end = history.end
    took = None if history.ended_ms is None else history.ended_ms - history.requested_ms
    waited = sum((wait.ended_ms or wait.at_ms) - wait.at_ms for wait in history.waits)
    base = {
        "ended_ms": history.ended_ms,
        "took_ms": took,
        "waited_ms": waited,
        "attempts": len(history.attempts),
        "skips": len(history.skips),
    }
    if isinstance(end, d.TurnAnswered):
        return {**base, "outcome": "answered", "answered_by": end.model, "fallback": end.fallback}
    if isinstance(end, d.TurnFailed):
        return {
            **base,
            "outcome": "failed",
            "end": end.end.value,
            "reason": end.reason.value if end.reason else None,
            "first_failure": end.first or None,
            "soonest_ms": end.soonest_ms,
            "soonest_model": end.soonest_model,
        }
    return {**base, "outcome": "unfinished"}


def _told(history: TurnHistory, names: Names) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []
    for notice in history.notices:
        due = notice.decided
        failed = _attempt(history, due.attempt)
        text, status = "", None
        if failed is not None and isinstance(failed.report, f.CallFailed):
            alias = failed.report.evidence.text
            text = (names.get(alias) or "") if alias else ""
            status = failed.classified.status if failed.classified else None
        told.append({
            "at_ms": notice.at_ms,
            "text": notice_text(due, text, status),
            "shown": not due.quiet,
            "delivered_ms": notice.delivered_ms,
            "rules": list(due.rules),
        })  # fmt: skip
    if isinstance(history.end, d.TurnFailed) and history.ended_ms is not None:
        text = failure_message(_as_turn(history, history.end), history.ended_ms)
        told.append(
            {"at_ms": history.ended_ms, "text": text, "shown": True, "delivered_ms": None, "rules": ["OBS-4"]}
        )
    return told


def _as_turn(history: TurnHistory, end: d.TurnFailed) -> Turn:
    """As much of the turn's state as its message for the user is made from."""
    attempts = tuple(
        Attempt(
            one.decided.attempt,
            one.decided.index,
            one.decided.model,
            one.decided.profile,
            one.started_ms,
            reason=one.classified.reason if one.classified else None,
            succeeded=one.succeeded,
        )
        for one in history.attempts
    )
    skips = tuple(
        Skip(
            s.decided.index,
            s.decided.model,
            s.decided.because,
            s.decided.reason,
            s.decided.until_ms,
            s.before_attempt,
        )
        for s in history.skips
    )
    return Turn(
        state="failed",
        attempts=attempts,
        skips=skips,
        end=end.end,
        soonest_ms=end.soonest_ms,
        soonest_model=end.soonest_model,
        guidance=end.guidance,
    )


# ---- why -----------------------------------------------------------------------------------------------


def _why(history: TurnHistory, names: Names) -> str:
    """One sentence for each candidate, and one for the end."""
    planned = history.planned
    if planned is None:
        return "The turn was requested and nothing was decided about it."
    sentences = [f"{planned.selected} was selected ({planned.source.value})"]
    if planned.strict:
        sentences[0] += ", and this selection allows no other model"
    first = planned.candidates[0] if planned.candidates else None
    if first is not None and first.origin == "sticky":
        sentences.append(f"{first.model} went first, since the session still stayed on it after a rate limit")
    sentences += [_candidate_sentence(history, model, names) for model in _visited(history)]
    sentences.append(_end_sentence(history, names))
    return ". ".join(sentence for sentence in sentences if sentence) + "."


def _visited(history: TurnHistory) -> list[str]:
    """Models that were tried or passed over, in that order, the one that answered left out."""
    order: dict[str, tuple[int, int]] = {}
    for attempt in history.attempts:
        order.setdefault(attempt.decided.model, (attempt.position, attempt.decided.index))
    for skip in history.skips:
        order.setdefault(skip.decided.model, (skip.position, skip.decided.index))
    return sorted(order, key=lambda model: order[model])


def _candidate_sentence(history: TurnHistory, model: str, names: Names) -> str:
    parts = []
    failed = [one for one in history.attempts if one.decided.model == model and one.classified is not None]
    reasons = list(dict.fromkeys(one.classified.reason.value for one in failed if one.classified))
    if failed:
        times = "once" if len(failed) == 1 else f"{len(failed)} times"
        parts.append(f"failed {times} ({', '.join(reasons)})")
        profiles = list(dict.fromkeys(names.of(one.decided.profile) for one in failed if one.decided.profile))
        if len(profiles) > 1:
            parts.append(f"with {len(profiles)} profiles ({', '.join(profiles)})")
    for skip in history.skips:
        if skip.decided.model == model:
            why = f", last reason {skip.decided.reason.value}" if skip.decided.reason else ""
            parts.append(f"was passed over ({skip.decided.because.value}{why})")
    return f"{model} " + " and ".join(parts) if parts else ""


def _how(history: TurnHistory, end: d.TurnAnswered, names: Names) -> str:
    """Why it was this model that answered, and with which profile where others had been tried."""
    before = [one.decided for one in history.attempts[: end.attempt - 1] if one.decided.model == end.model]
    again = " when it was tried again" if before else ""
    if any(one.profile != end.profile for one in before):
        again = f" with another profile, {names.of(end.profile)}"
    if not end.fallback:
        return f"{again}, because it is the selected model and could be used"
    candidates = history.planned.candidates if history.planned else ()
    if candidates and candidates[0].model == end.model and candidates[0].origin == "sticky":
        return f"{again}, because the session stays on this fallback for a while"
    return f"{again}, because it was the next candidate of the chain that could be used"


def _end_sentence(history: TurnHistory, names: Names) -> str:
    end = history.end
    if isinstance(end, d.TurnAnswered):
        return f"{end.model} answered{_how(history, end, names)}"
    if isinstance(end, d.TurnFailed):
        text = f"No model answered: {end.end.value}"
        if end.soonest_model:
            text += f"; {end.soonest_model} can be tried again first"
        return text
    last = history.attempts[-1] if history.attempts else None
    if last is not None and last.ended_ms is None:
        return f"{last.decided.model} is being called"
    return "The turn is not over"
