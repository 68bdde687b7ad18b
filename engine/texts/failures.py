"""What a failed attempt, a skipped candidate and a failed turn are called for people (OBS-1, OBS-4)."""

from standby.engine.turn import Attempt, Turn
from standby.events.vocabulary import Failure, SkipBecause


def attempt_line(attempt: Attempt) -> str:
    """An attempt in one readable line, without the provider's words (OBS-1)."""
    if attempt.succeeded:
        return f"{attempt.model}: answered"
    if attempt.reason is None:
        return f"{attempt.model}: not finished" if attempt.ended_ms is None else f"{attempt.model}: left"
    return f"{attempt.model}: {attempt_detail(attempt)}"


def attempt_detail(attempt: Attempt) -> str:
    """Why an attempt failed: reason, status and code; "" if it did not."""
    if attempt.reason is None:
        return ""
    marks = [f"HTTP {attempt.status}"] if attempt.status is not None else []
    marks += [attempt.code] if attempt.code else []
    return attempt.reason.value.replace("_", " ") + (f" ({', '.join(marks)})" if marks else "")


def skip_detail(model: str, because: SkipBecause, reason: Failure | None) -> str:
    """Why a candidate was passed over, in one line."""
    provider = model.partition("/")[0]
    why = reason.value.replace("_", " ") if reason is not None else ""
    match because:
        case SkipBecause.COOLDOWN:
            return f"provider {provider} is in cooldown ({why})"
        case SkipBecause.PROBED_ALREADY:
            return f"provider {provider} is in cooldown (checked already in this turn)"
        case SkipBecause.AUTH:
            return f"provider {provider} has {why} issue (skipping all models)"
        case SkipBecause.SKIP_MARKER:
            return f"recent {why} failure of {model} in this session"
        case _:
            return because.value.replace("_", " ")


def failure_message(turn: Turn, now_ms: int) -> str:
    """What a reply runner can tell the user about a failed turn (OBS-4, CLS-34), without provider details."""
    reasons = [a.reason for a in turn.attempts if a.reason is not None]
    reasons += [skip.reason for skip in turn.skips if skip.reason is not None]
    if turn.guidance is Failure.CONTEXT_OVERFLOW:
        return "⚠️ The conversation no longer fits the model. Shorten or compact it, or start a new one."
    if not turn.attempts and any(skip.because is SkipBecause.NO_CREDENTIAL for skip in turn.skips):
        return (
            "⚠️ No account can serve this model: those that are configured are gone or unusable. Choose another."
        )
    busy = {Failure.RATE_LIMIT, Failure.OVERLOADED}
    if reasons and Failure.BILLING in reasons:
        return "⚠️ A provider account has no credit left. Top it up, or choose another model."
    if reasons and all(reason is Failure.OVERLOADED for reason in reasons):
        return "⚠️ The providers are overloaded. Please try again in a few minutes."
    if reasons and set(reasons) <= busy:
        if when := _soon(turn, now_ms):
            advice = "try again shortly" if when.endswith("min") else "wait a moment"
            return f"⚠️ Rate-limited — ready in ~{when}. Please {advice}."
        return "⚠️ All models are temporarily rate-limited. Please try again in a few minutes."
    if reasons and set(reasons) <= {*busy, Failure.SERVER_ERROR, Failure.TIMEOUT, Failure.INTERRUPTED}:
        return "⚠️ The providers have trouble right now. Please try again in a few minutes."
    if turn.reason is Failure.EMPTY_RESPONSE:
        return "⚠️ The model ended its turn without an answer. Please try again."
    last = turn.reason.value.replace("_", " ") if turn.reason else "no candidate could be tried"
    when = _soon(turn, now_ms)
    again = f" {turn.soonest_model} can be tried again in ~{when}." if when else ""
    return f"⚠️ The request failed: {last}.{again}"


def _soon(turn: Turn, now_ms: int) -> str:
    """How long until something can be tried again, rounded up; "" where that is not known (OURS-10)."""
    if turn.soonest_ms is None or turn.soonest_ms <= now_ms:
        return ""
    seconds = max(1, -(-(turn.soonest_ms - now_ms) // 1000))
    return f"{seconds}s" if seconds <= 60 else f"{-(-seconds // 60)} min"
