"""At the crossroads: which profile of which candidate is tried next (FLOW-1, FLOW-2, SKIP).

The chain stands at a candidate. Its provider's profiles are ranked, the session's pin goes first
(`profiles`), and the first that is free and not used up in this turn is called. If all that are left
are blocked, `standby.engine.decide.probe` decides. A candidate whose provider has no profiles at all is called
without one.
"""

from standby.engine.decide.chain import consents, refusal_models
from standby.engine.decide.ending import fail, run_out
from standby.engine.decide.probe import CallCandidate, SkipCandidate, all_blocked
from standby.engine.decide.profiles import Ranked, keep_pin, order_rules, preferred
from standby.engine.decide.selection import configured
from standby.engine.decide.sticky import drop_sticky
from standby.engine.deciding import Draft
from standby.engine.rulesets import Ruleset, ruleset_of
from standby.engine.turn import Turn
from standby.events.decisions import AttemptStarted, CandidateSkipped, ChainAdvanced, ProbeAdmitted
from standby.events.policy import Policy
from standby.events.vocabulary import Failure, SkipBecause, TurnEnd
from standby.projections.sessions import Marker


def choose(draft: Draft, key: str, policy: Policy, ruleset: Ruleset) -> None:
    """Go along the chain until a call starts or no candidate is left."""
    while True:
        turn = draft.turn(key)
        if not turn.standing:
            run_out(draft, key, policy, ruleset)
            return
        model = turn.candidates[turn.index].model
        way = (
            _withdrawn(draft, turn, policy, model)
            or _without_consent(turn, policy, model)
            or _decide(draft, turn, policy, ruleset, model)
        )
        if isinstance(way, CallCandidate):
            if way.probe:
                draft.emit(
                    ProbeAdmitted(
                        rules=way.rules,
                        turn=key,
                        provider=turn.provider,
                        profile=way.profile,
                        primary=way.primary,
                    )
                )
            start(draft, key, policy, way.profile, way.rules, probe=way.probe)
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
    out = {besides, *_markers(draft, turn, policy, model)}
    for one in preferred(draft, turn, policy, ruleset, model):
        if one.block is None and one.alias not in out and (model, one.alias) not in turn.used:
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
        one.alias == profile and one.block is None for one in preferred(draft, turn, policy, ruleset, model)
    )
    if free:
        start(draft, key, policy, profile, rules, continuation=continuation)
    elif turn.replayable:
        choose(draft, key, policy, ruleset)
    else:
        fail(draft, key, policy, ruleset, TurnEnd.UNSAFE, ("REC-8",))


def _withdrawn(draft: Draft, turn: Turn, policy: Policy, model: str) -> SkipCandidate | None:
    """Pass the candidate over if a newer policy took it out of the configured chain.

    A turn keeps the policy that planned it, but what the operator removes is removed at once (CHAIN-2).
    """
    request = turn.request
    if turn.policy == draft.policy_at or request is None or request.fallbacks is not None:
        return None
    if model == turn.selected:
        return None
    then, now = (configured(which, request.agent, request.image).chain for which in (policy, draft.policy()))
    listed, left = ({chain.primary, *(chain.fallbacks or ())} for chain in (then, now))
    return SkipCandidate(SkipBecause.REMOVED, None, None, ("CHAIN-2",)) if model in listed - left else None


def _without_consent(turn: Turn, policy: Policy, model: str) -> SkipCandidate | None:
    """Pass the candidate over if the operator does not let the turn go there for the reason that brings it
    (OURS-7). The selected model needs no consent, nor does one that is being called already."""
    if not policy.consent or model == turn.selected or turn.index == 0:
        return None
    last = turn.attempts[-1] if turn.attempts else None
    if last is not None and last.index == turn.index:
        return None
    since = (skip.reason for skip in reversed(turn.skips) if skip.before_attempt > turn.attempt)
    reason = next((one for one in since if one is not None), last.reason if last is not None else None)
    return (
        None
        if consents(policy, reason, model)
        else SkipCandidate(SkipBecause.CONSENT, reason, None, ("OURS-7",))
    )


def _decide(
    draft: Draft, turn: Turn, policy: Policy, ruleset: Ruleset, model: str
) -> SkipCandidate | CallCandidate:
    if _tls_failed(turn):
        return SkipCandidate(SkipBecause.TLS, Failure.TLS_CERTIFICATE, None, ("ADV-1",))
    profiles = preferred(draft, turn, policy, ruleset, model)
    if markers := _markers(draft, turn, policy, model):
        if (skip := _passed_over(markers, profiles)) is not None:
            return skip
        # Another profile does not inherit the mark.
        profiles = [one for one in profiles if one.alias not in markers]
    if not profiles:
        return _without_profile(draft, turn, policy, model)
    left = [one for one in profiles if (model, one.alias) not in turn.used]
    if not left:
        return SkipCandidate(SkipBecause.USED_UP, None, None, ("OURS-11",))
    if left[0].block is None:
        rules = order_rules(draft, policy, turn.provider, profiles, draft.stamp.at_ms)
        return CallCandidate(left[0].alias, ("FLOW-2", *rules))
    return all_blocked(draft, turn, policy, ruleset, left)


def _without_profile(draft: Draft, turn: Turn, policy: Policy, model: str) -> SkipCandidate | CallCandidate:
    provider = turn.provider
    known = draft.known_profiles.get(provider) or draft.order.get(provider) or provider in policy.order
    if known:
        known_profiles = draft.known_profiles.get(provider, ())
        deleted = provider in policy.order and not any(
            alias in known_profiles for alias in policy.order[provider]
        )
        # An order that names only accounts that are gone calls for choosing one that is there.
        return SkipCandidate(
            SkipBecause.NO_CREDENTIAL, Failure.AUTH, None, ("ORD-1", "PIN-12") if deleted else ("ORD-1",)
        )
    if (model, "") in turn.used:
        return SkipCandidate(SkipBecause.USED_UP, None, None, ("OURS-11",))
    return CallCandidate("", ("FLOW-2",))


def _markers(draft: Draft, turn: Turn, policy: Policy, model: str) -> dict[str, Marker]:
    """The skip markers on this fallback, by profile; the selected model is never passed over (SKIP-3). They are
    in the memory of the process that set them unless the policy shares them (OURS-14)."""
    request = turn.request
    if request is None or not policy.skip_ttl_ms or model == turn.selected:
        return {}
    return {
        marker.profile: marker
        for marker in draft.session(request.session).markers
        if marker.model == model
        and marker.until_ms > draft.stamp.at_ms
        and (
            policy.shared_markers
            or (marker.runtime == draft.stamp.runtime and draft.local(marker.runtime, marker.epoch))
        )
    }


def _passed_over(markers: dict[str, Marker], profiles: list[Ranked]) -> SkipCandidate | None:
    """Pass the candidate over if every profile that it could be called with is marked (SKIP-2)."""
    names = [one.alias for one in profiles] or [""]
    if any(name not in markers for name in names):
        return None
    soonest = min((markers[name] for name in names), key=lambda marker: marker.until_ms)
    return SkipCandidate(SkipBecause.SKIP_MARKER, soonest.reason, soonest.until_ms, ("SKIP-2",))


def _tls_failed(turn: Turn) -> bool:
    """A certificate that failed for one model of a provider fails for all."""
    return any(
        a.reason is Failure.TLS_CERTIFICATE and a.model.partition("/")[0] == turn.provider
        for a in turn.attempts
    )


def start(
    draft: Draft,
    key: str,
    policy: Policy,
    profile: str,
    rules: tuple[str, ...],
    *,
    probe: bool = False,
    continuation: bool = False,
    finalize: bool = False,
) -> None:
    """Start a call to the present candidate with this profile, and keep the session's pin true."""
    turn = draft.turn(key)
    request = turn.request
    model = turn.candidates[turn.index].model
    if profile and request is not None:
        rules = keep_pin(draft, turn, policy, profile, rules)
    inside = refusal_models(draft, turn, policy, ruleset_of(policy), profile) if profile else ()
    if inside:
        rules = (*rules, "ADV-13")
    resumed = request is not None and bool(request.continues)
    if resumed:
        rules = (*rules, "NOTE-13", "REC-6")
    timeout = request.timeout_ms if request and request.timeout_ms is not None else policy.attempt_timeout_ms
    draft.emit(
        AttemptStarted(
            rules=rules,
            turn=key,
            attempt=turn.attempt + 1,
            index=turn.index,
            model=model,
            profile=profile,
            probe=probe,
            continuation=continuation or resumed or not turn.replayable,
            timeout_ms=timeout,
            finalize=finalize,
            allowance_ms=(request.allowance_ms if request else None) or 0,
            refusal_models=inside,
        )
    )


def advance(
    draft: Draft,
    key: str,
    policy: Policy,
    ruleset: Ruleset,
    reason: Failure | None,
    rules: tuple[str, ...],
) -> None:
    """Leave the present candidate for the next one, and choose there; `choose` asks for consent (OURS-7)."""
    turn = draft.turn(key)
    drop_sticky(draft, turn)
    following = turn.index + 1
    if following >= len(turn.candidates):
        run_out(draft, key, policy, ruleset)
        return
    draft.emit(
        ChainAdvanced(
            rules=rules,
            turn=key,
            index=following,
            model=turn.candidates[following].model,
            after=turn.candidates[turn.index].model,
            reason=reason,
        )
    )
    choose(draft, key, policy, ruleset)
