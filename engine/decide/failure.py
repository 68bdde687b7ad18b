"""What the report of a failed call says, as the rooms that decide about it read it."""

from typing import NamedTuple

from standby.engine.classify.classifier import Reading, classify
from standby.engine.decide.cooldowns import Blame
from standby.engine.rulesets import Ruleset
from standby.engine.turn import Attempt
from standby.events.facts import CallFailed, CallUnknown
from standby.events.policy import Policy
from standby.events.vocabulary import Failure, Stage


class FailedCall(NamedTuple):
    """The reading of a failure and what the report says around it."""

    reading: Reading
    started_ms: int
    received_ms: int
    status: int | None = None
    stage: Stage = Stage.STREAM
    provider_started: bool = True
    selected_profile: bool = True
    finished_work: bool = False

    @property
    def reason(self) -> Failure:
        """What the failure is."""
        return self.reading.reason


def failure_of(fact: CallFailed | CallUnknown, policy: Policy, ruleset: Ruleset, at_ms: int) -> FailedCall:
    """Read the evidence of a failed call; a call that nobody saw end was interrupted."""
    if isinstance(fact, CallUnknown):
        return FailedCall(Reading(reason=Failure.INTERRUPTED, row=""), at_ms, at_ms)
    return FailedCall(
        classify(fact.evidence, ruleset=ruleset.id, extra_rows=policy.rows),
        fact.started_ms,
        fact.received_ms,
        fact.evidence.status,
        fact.evidence.stage,
        fact.provider_started,
        fact.selected_profile,
        fact.finished_work,
    )


def blame_for(failure: FailedCall, attempt: Attempt, *, leads_on: bool) -> Blame:
    """What the failure says about the profile of the attempt: nothing where the runtime had selected none
    (COOL-23), and nothing where somebody stopped the call on purpose (ADV-2)."""
    blamed = failure.selected_profile and not failure.reading.aborted
    return Blame(
        attempt.profile if blamed else "",
        attempt.model,
        failure.reason,
        failure.reading.retry_after_ms,
        failure.received_ms,
        failure.started_ms,
        failure.reading.subscription,
        leads_on,
        failure.provider_started,
    )
