"""Steps: what the host does next, as values. The engine never calls anybody.

A step is a question about the turn's state, so a crash loses nothing: whoever opens the log again gets the
same step, except that a call which nobody saw end becomes `SettleUnknown`.
"""

import msgspec

from standby.engine.turn import Attempt, Skip, Turn
from standby.events.errors import BadReport
from standby.events.facts import Usage
from standby.events.vocabulary import Failure, TurnEnd, WaitBecause

_CONTINUE = (
    "The run was interrupted. Go on from the transcript. Look at each action that was under way and find out "
    "what came of it before you decide whether to repeat it."
)
_FINALIZE = "The work is finished. Give the final answer from the transcript; use no tools."


class CallModel(msgspec.Struct, frozen=True, kw_only=True):
    """Call this model with this profile, then report how it went.

    `continuation` says to continue the saved transcript and to inspect interrupted actions first (REC-6);
    the request itself is not sent again.
    """

    turn: str
    attempt: int
    model: str
    """As `provider/model`."""
    profile: str = ""
    """Alias of the auth profile; "" when the provider has none."""
    timeout_ms: int | None = None
    continuation: bool = False
    probe: bool = False
    finalize: bool = False
    """Offer no tools: only the final answer to finished work is owed (REC-14)."""
    harness: str = ""
    """The runtime that makes the call, whichever profile pays (ORD-12)."""
    allowance_ms: int = 0
    """Until this long after its start, evidence of no progress does not end the call (REC-10)."""
    refusal_models: tuple[str, ...] = ()
    """Where the provider may go by itself, inside the request, when the model refuses (ADV-13)."""

    @property
    def instruction(self) -> str:
        """What the agent is told besides the transcript; "" for an ordinary call (REC-6, REC-14)."""
        if self.finalize:
            return _FINALIZE
        return _CONTINUE if self.continuation else ""

    @property
    def provider(self) -> str:
        """The part of `model` before the first slash."""
        return self.model.partition("/")[0]

    @property
    def model_id(self) -> str:
        """The model as its provider names it."""
        return self.model.partition("/")[2]


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    """Wait until `until_ms`, then resume. `retry` of `of` is for the status line (REC-7, NOTE-5)."""

    turn: str
    until_ms: int
    because: WaitBecause
    reason: Failure | None = None
    retry: int = 0
    model: str = ""
    of: int = 0
    """How many retries the outage gets."""


class Repair(msgspec.Struct, frozen=True, kw_only=True):
    """Repair the request (compact, trim, sanitise), then report `repair_finished`."""

    turn: str
    reason: Failure | None


class SettleUnknown(msgspec.Struct, frozen=True, kw_only=True):
    """A call was under way and its end was not seen: report what is known of it, else `call_unknown`."""

    turn: str
    attempt: int
    model: str


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """The turn is over."""

    turn: str
    answered: bool
    model: str
    """The model that answered; "" when none did."""
    selected: str
    end: TurnEnd | None
    reason: Failure | None
    attempts: tuple[Attempt, ...]
    skips: tuple[Skip, ...]
    soonest_ms: int | None = None
    soonest_model: str = ""
    target: str = ""
    usages: tuple[tuple[str, Usage | None], ...] = ()
    guidance: Failure | None = None
    """The failure whose guidance the user is shown: of a failed turn, where it is not the last one; of an
    answered one, what it is warned of (ADV-11)."""


Step = CallModel | Wait | Repair | SettleUnknown | Settled


def step_of(key: str, turn: Turn) -> Step:
    """What the turn's owner does next."""
    if turn.state == "calling":
        last = turn.attempts[-1]
        return CallModel(
            turn=key,
            attempt=last.attempt,
            model=last.model,
            profile=last.profile,
            timeout_ms=last.timeout_ms,
            continuation=last.continuation,
            probe=last.probe,
            finalize=last.finalize,
            harness=turn.request.harness if turn.request else "",
            allowance_ms=last.allowance_ms,
            refusal_models=last.refusal_models,
        )
    if turn.state == "orphaned":
        last = turn.attempts[-1]
        return SettleUnknown(turn=key, attempt=last.attempt, model=last.model)
    if turn.state == "waiting" and turn.until_ms is not None and turn.waits_for is not None:
        last = turn.attempts[-1]
        return Wait(
            turn=key,
            until_ms=turn.until_ms,
            because=turn.waits_for,
            reason=last.reason,
            retry=turn.retries,
            model=last.model,
            of=turn.retries_of,
        )
    if turn.state == "repairing":
        return Repair(turn=key, reason=turn.repairs_for)
    if turn.state in ("answered", "failed"):
        return Settled(
            turn=key,
            answered=turn.state == "answered",
            model=turn.answered,
            selected=turn.selected,
            end=turn.end,
            reason=turn.reason,
            attempts=turn.attempts,
            skips=turn.skips,
            soonest_ms=turn.soonest_ms,
            soonest_model=turn.soonest_model,
            target=turn.target,
            usages=turn.usages,
            guidance=turn.guidance,
        )
    raise BadReport(f"turn {key} is in state {turn.state}, which no host sees")
