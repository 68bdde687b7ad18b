"""Quota checks of subscriptions (COOL-13, COOL-14, COOL-19, COOL-20).

A successful check replaces the saved reset by the current one, also an earlier one, and a check that finds
capacity adds no delay of its own. An answer that was unavailable or invalid leaves the saved block. A check
that is older than a newer success with the credential, or than a newer check, says nothing any more.
"""

from standby.engine.draft import Draft
from standby.events.decisions import BlockCleared, BlockSet
from standby.events.facts import QuotaObserved
from standby.events.vocabulary import BlockKind, Failure
from standby.projections.health import Health, cell_of, cleared_since

__all__ = ["observe_quota"]


def observe_quota(draft: Draft, fact: QuotaObserved) -> None:
    """Bring the usage window of the profile to what the check found."""
    health = draft.profiles.get(fact.profile) or Health()
    newest = max(cleared_since(health, ""), health.checked_ms)
    if not fact.valid or fact.checked_ms < newest:
        return
    window = cell_of(health, "", Failure.RATE_LIMIT, BlockKind.WINDOW)
    if window is not None and window.evidence_ms > fact.checked_ms:
        # The block rests on a newer refusal than the check.
        return
    until = fact.resets_at_ms if fact.exhausted else None
    if until is None or until <= draft.stamp.at_ms:
        if window is not None and not fact.exhausted:
            draft.emit(
                BlockCleared(
                    rules=("COOL-14", "COOL-19"),
                    profile=fact.profile,
                    evidence_ms=fact.checked_ms,
                    reason=Failure.RATE_LIMIT,
                )
            )
        return
    if window is None or window.until_ms != until:
        draft.emit(
            BlockSet(
                rules=("COOL-13", "COOL-19"),
                profile=fact.profile,
                reason=Failure.RATE_LIMIT,
                kind=BlockKind.WINDOW,
                until_ms=until,
                evidence_ms=fact.checked_ms,
            )
        )
