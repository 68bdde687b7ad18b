"""At the crossroads: which profile of which candidate is tried next (FLOW-1, FLOW-2, PROBE, SKIP).

The chain stands at a candidate. Its provider's profiles are ranked; the first that is free and not used up in
this turn is called. If all that are left are blocked, the provider is not passed over for ever: each candidate
is decided on its own (PROBE-1).

    what blocks it                 the selected model                 a sibling of an earlier candidate
    -----------------------------  ---------------------------------  ---------------------------------
    auth, permanent auth           passed over (PROBE-6)              passed over (PROBE-6)
    billing                        checked on the throttle (PROBE-2)  passed over
    rate limit, timeout, unknown   checked on the throttle near the   tried, once per provider and turn
                                   block's end (PROBE-3)              (PROBE-4, PROBE-5)
    anything else                  the same                           passed over

A candidate whose provider has no profiles at all is called without one.
"""

from typing import NamedTuple

from standby.engine.draft import Draft
from standby.engine.order import Ranked, is_explicit, ranked
from standby.engine.rulesets import Ruleset
from standby.engine.stickiness import drop_sticky
from standby.engine.summary import fail
from standby.engine.turn import Turn
from standby.events.decisions import (
    AttemptStarted,
    CandidateSkipped,
    CheckAdmitted,
    PinSet,
)
from standby.events.policy import Policy
from standby.events.vocabulary import BlockKind, Failure, SkipBecause, TurnEnd
from standby.projections.sessions import Pin

__all__ = ["again", "choose", "start", "usable_now"]

_TRANSIENT = frozenset(
    {
        Failure.RATE_LIMIT,
        Failure.OVERLOADED,
        Failure.TIMEOUT,
        Failure.UNKNOWN,
        Failure.UNCLASSIFIED,
        Failure.EMPTY_RESPONSE,
        Failure.NO_ERROR_DETAILS,
    }
)
_PERSISTENT = frozenset({Failure.AUTH, Failure.AUTH_PERMANENT})


class _Skip(NamedTuple):
    because: SkipBecause
    reason: Failure | None
    until_ms: int | None
    rules: tuple[str, ...]


class _Call(NamedTuple):
    profile: str
    rules: tuple[str, ...]
    check: bool = False
    primary: bool = False


def choose(draft: Draft, key: str, policy: Policy, ruleset: Ruleset) -> None:
    """Go along the chain until a call starts or no candidate is left."""
    while True:
        turn = draft.turn(key)
        if not turn.standing:
            fail(draft, key, policy, ruleset, TurnEnd.EXHAUSTED, ("FLOW-14",))
            return
        model = turn.candidates[turn.index].model
        way = _decide(draft, turn, policy, ruleset, model)
        if isinstance(way, _Call):
            if way.check:
                draft.emit(
                    CheckAdmitted(
                        rules=way.rules,
                        turn=key,
                        provider=turn.provider,
                        profile=way.profile,
                        primary=way.primary,
                    )
                )
            start(draft, key, policy, way.profile, way.rules, check=way.check)
            return
        drop_sticky(draft, turn)
        draft.emit(
            CandidateSkipped(
                rules=(*way.rules, "OURS-12"),
                turn=key,
                index=turn.index,
                model=model,
                because=way.because,
                reason=way.reason,
                until_ms=way.until_ms,
            )
        )


def usable_now(draft: Draft, turn: Turn, policy: Policy, ruleset: Ruleset, *, besides: str = "") -> str | None:
    """The profile of the present candidate that could be called next, or None."""
    model = turn.candidates[turn.index].model
    for one in _preferred(draft, turn, policy, ruleset, model):
        if one.block is None and one.alias != besides and (model, one.alias) not in turn.used:
            return one.alias
    return None


def again(
    draft: Draft,
    key: str,
    policy: Policy,
    ruleset: Ruleset,
    rules: tuple[str, ...],
    *,
    continuation: bool = False,
) -> None:
    """Call the same candidate with the same profile once more, unless it was blocked or lost meanwhile."""
    turn = draft.turn(key)
    if not turn.replayable and not (turn.request is not None and turn.request.continuable):
        # A report that came late, or from a former owner, claims an effect since this was ordered.
        fail(draft, key, policy, ruleset, TurnEnd.UNSAFE, ("REC-8",))
        return
    profile = turn.attempts[-1].profile
    model = turn.candidates[turn.index].model
    free = not profile or any(
        one.alias == profile and one.block is None for one in _preferred(draft, turn, policy, ruleset, model)
    )
    if free:
        start(draft, key, policy, profile, rules, continuation=continuation)
    elif turn.replayable:
        choose(draft, key, policy, ruleset)
    else:
        fail(draft, key, policy, ruleset, TurnEnd.UNSAFE, ("REC-8",))


def _decide(draft: Draft, turn: Turn, policy: Policy, ruleset: Ruleset, model: str) -> _Skip | _Call:
    if (marker := _marked(draft, turn, policy, model)) is not None:
        return _Skip(SkipBecause.SKIP_MARKER, Failure.AUTH, marker, ("SKIP-2",))
    if _tls_failed(turn):
        return _Skip(SkipBecause.TLS, Failure.TLS_CERTIFICATE, None, ("ADV-1",))
    profiles = _preferred(draft, turn, policy, ruleset, model)
    if not profiles:
        return _without_profile(draft, turn, policy, model)
    left = [one for one in profiles if (model, one.alias) not in turn.used]
    if not left:
        return _Skip(SkipBecause.USED_UP, None, None, ("OURS-11",))
    if left[0].block is None:
        return _Call(left[0].alias, ("FLOW-2", "ORD-1"))
    free = next((one for one in left if one.block is None), None)
    if free is not None:
        return _Call(free.alias, ("FLOW-2", "ORD-5"))
    return _all_blocked(draft, turn, policy, ruleset, left)


def _without_profile(draft: Draft, turn: Turn, policy: Policy, model: str) -> _Skip | _Call:
    provider = turn.provider
    known = draft.stock.get(provider) or draft.order.get(provider) or provider in policy.order
    if known:
        return _Skip(SkipBecause.NO_CREDENTIAL, Failure.AUTH, None, ("ORD-1",))
    if (model, "") in turn.used:
        return _Skip(SkipBecause.USED_UP, None, None, ("OURS-11",))
    return _Call("", ("FLOW-2",))


def _preferred(draft: Draft, turn: Turn, policy: Policy, ruleset: Ruleset, model: str) -> list[Ranked]:
    """The ranked profiles with the session's pin in front while it may be used (PIN-1, PIN-4)."""
    request = turn.request
    provider = turn.provider
    agent = request.agent if request else ""
    profiles = ranked(draft, policy, ruleset, provider, model, agent, draft.stamp.at_ms)
    pin = draft.session(request.session).pins.get(provider) if request else None
    if pin is None:
        return profiles
    place = next((i for i, one in enumerate(profiles) if one.alias == pin.profile), None)
    if place is None or profiles[place].block is not None:
        return profiles
    if pin.displaced and is_explicit(draft, policy, provider):
        # A rate limit drove the session here; an earlier profile of the order is usable again (COOL-18).
        return profiles
    return [profiles[place], *profiles[:place], *profiles[place + 1 :]]


def _marked(draft: Draft, turn: Turn, policy: Policy, model: str) -> int | None:
    """Until when a skip marker passes this fallback over; the selected model is never passed over (SKIP-3)."""
    request = turn.request
    if request is None or not policy.skip_ttl_ms or model == turn.selected:
        return None
    session = draft.session(request.session)
    if not session.markers:
        return None
    pin = session.pins.get(turn.provider)
    for marker in session.markers:
        local = policy.shared_markers or (
            marker.runtime == draft.stamp.runtime and draft.local(marker.runtime, marker.epoch)
        )
        same = pin is None or not pin.user or marker.profile == pin.profile
        if marker.model == model and local and same and marker.until_ms > draft.stamp.at_ms:
            return marker.until_ms
    return None


def _tls_failed(turn: Turn) -> bool:
    """A certificate that failed for one model of a provider fails for all."""
    return any(
        a.reason is Failure.TLS_CERTIFICATE and a.model.partition("/")[0] == turn.provider
        for a in turn.attempts
    )


def _all_blocked(
    draft: Draft, turn: Turn, policy: Policy, ruleset: Ruleset, left: list[Ranked]
) -> _Skip | _Call:
    """Every profile that is left is blocked: check one, try a sibling, or pass the candidate over."""
    soonest = left[0]
    cells = [one.block for one in left if one.block is not None]
    reasons = {cell.reason for cell in cells}
    until = min(cell.until_ms for cell in cells)
    reason = soonest.block.reason if soonest.block else Failure.UNKNOWN
    if reasons <= _PERSISTENT:
        return _Skip(SkipBecause.AUTH, reason, until, ("PROBE-6",))
    if Failure.BILLING in reasons and not reasons & _TRANSIENT:
        reason = Failure.BILLING
    candidate = turn.candidates[turn.index]
    primary = candidate.model == turn.selected
    if primary:
        check = _checkable(draft, policy, ruleset, left)
        if check is not None:
            rule = "PROBE-2" if reason is Failure.BILLING else "PROBE-3"
            if turn.provider in turn.checked:
                return _Skip(SkipBecause.CHECKED_ALREADY, reason, until, ("PROBE-5",))
            return _Call(check, (rule, "PROBE-1"), check=True, primary=True)
        return _Skip(SkipBecause.COOLDOWN, reason, until, ("PROBE-3",))
    sibling = any(c.model.partition("/")[0] == turn.provider for c in turn.candidates[: turn.index])
    transient = next(
        (
            one
            for one in left
            if one.block is not None and one.block.reason in _TRANSIENT and one.block.kind is BlockKind.COOLDOWN
        ),
        None,
    )
    if not sibling or transient is None:
        rule = "PROBE-2" if reason is Failure.BILLING else "PROBE-1"
        return _Skip(SkipBecause.COOLDOWN, reason, until, (rule,))
    if turn.provider in turn.checked:
        return _Skip(SkipBecause.CHECKED_ALREADY, reason, until, ("PROBE-5",))
    return _Call(transient.alias, ("PROBE-4", "PROBE-5"), check=True)


def _checkable(draft: Draft, policy: Policy, ruleset: Ruleset, left: list[Ranked]) -> str | None:
    """The blocked profile that the throttle lets the primary check now, soonest expiry first."""
    now = draft.stamp.at_ms
    settings = policy.checks
    interval = ruleset.check_interval_ms if settings.interval_ms is None else settings.interval_ms
    margin = ruleset.check_margin_ms if settings.margin_ms is None else settings.margin_ms
    one = left[0]
    if one.health.observed is None or one.block is None:
        return None
    last = _last_check(draft, policy, one.health.observed.provider)
    if last is not None and now - last < interval:
        return None
    for one in left:
        block = one.block
        if block is None or block.reason in _PERSISTENT or block.until_ms - now > margin:
            continue
        if one.health.observed is not None and one.health.observed.inline:
            # A key from configuration is not retried inside its window (BILL-4).
            continue
        return one.alias
    return None


def _last_check(draft: Draft, policy: Policy, provider: str) -> int | None:
    slots = draft.runtimes.keys_now() if policy.shared_markers else iter((draft.stamp.runtime,))
    found = [
        runtime.checks[provider]
        for slot in slots
        if (runtime := draft.runtimes.get(slot)) is not None and provider in runtime.checks
    ]
    return max(found, default=None)


def start(
    draft: Draft,
    key: str,
    policy: Policy,
    profile: str,
    rules: tuple[str, ...],
    *,
    check: bool = False,
    continuation: bool = False,
    finalize: bool = False,
) -> None:
    """Start a call to the present candidate with this profile, and keep the session's pin true."""
    turn = draft.turn(key)
    request = turn.request
    model = turn.candidates[turn.index].model
    if profile and request is not None:
        rules = _keep_pin(draft, turn, policy, profile, rules)
    timeout = request.timeout_ms if request and request.timeout_ms is not None else policy.attempt_timeout_ms
    draft.emit(
        AttemptStarted(
            rules=rules,
            turn=key,
            attempt=turn.attempt + 1,
            index=turn.index,
            model=model,
            profile=profile,
            check=check,
            continuation=continuation or not turn.replayable,
            timeout_ms=timeout,
            finalize=finalize,
            allowance_ms=(request.allowance_ms if request else None) or 0,
        )
    )


def _keep_pin(
    draft: Draft, turn: Turn, policy: Policy, profile: str, rules: tuple[str, ...]
) -> tuple[str, ...]:
    """Pin the chosen profile unless a pin stands that may stay (PIN-1, PIN-2, PIN-4)."""
    if turn.request is None:
        return rules
    session, provider = turn.request.session, turn.provider
    pin = draft.session(session).pins.get(provider)
    if pin is not None and pin.profile == profile:
        return (*rules, "PIN-4" if pin.user else "PIN-1")
    if pin is not None and pin.user:
        # The user's pin is out for now: another profile serves and the pin stays.
        return (*rules, "PIN-4", "PIN-11")
    if pin is not None and not _pin_may_go(draft, turn, pin):
        return rules
    displaced = _rate_limited_pin(draft, turn, policy, pin)
    draft.emit(
        PinSet(
            rules=("PIN-1",) if pin is None else ("PIN-2",),
            session=session,
            provider=provider,
            profile=profile,
            displaced=displaced,
        )
    )
    return (*rules, "PIN-1")


def _pin_may_go(draft: Draft, turn: Turn, pin: Pin) -> bool:
    """An automatic pin goes while its profile is blocked or gone, or when the session comes back to an
    earlier profile of its order (PIN-2, COOL-18)."""
    health = draft.profiles.get(pin.profile)
    if health is None or health.observed is None or pin.displaced:
        return True
    now = draft.stamp.at_ms
    model = turn.candidates[turn.index].model
    return any(cell.until_ms > now and cell.covers(model) for cell in health.cells)


def _rate_limited_pin(draft: Draft, turn: Turn, policy: Policy, pin: Pin | None) -> bool:
    """Whether a rate limit is what drives the session off its profile in an explicit order (COOL-18)."""
    if pin is None or not is_explicit(draft, policy, turn.provider):
        return False
    health = draft.profiles.get(pin.profile)
    return health is not None and any(
        cell.reason is Failure.RATE_LIMIT and cell.until_ms > draft.stamp.at_ms for cell in health.cells
    )
