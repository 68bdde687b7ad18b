"""A commit: one fact, the decisions that follow from it, and the circumstances they were made in."""

import msgspec

from standby.events.decisions import Decision
from standby.events.facts import Fact

SHAPE = 2
"""Number of the storage format; raised when a field is added or an old commit needs an upcaster to be read."""


class Stamp(msgspec.Struct, gc=False, frozen=True, forbid_unknown_fields=True):
    """Who decides and when: everything besides view and fact that `plan` may use.

    Attributes:
        at_ms: moment of the decision, epoch ms; never falls within one runtime.
        draw: one random number of 32 bits, from which all jitter is derived.
        runtime: slot of the runtime that writes.
        epoch: how often that slot had been started when the runtime began.
    """

    at_ms: int
    entropy: int
    runtime: str
    epoch: int


class Commit(msgspec.Struct, gc=False, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What is stored, one row each: `decisions` are what `plan` gave for `fact` on the log before it."""

    at_ms: int
    runtime: str
    epoch: int
    entropy: int
    fact: Fact
    decisions: tuple[Decision, ...] = ()
    shape: int = SHAPE

    def stamp(self) -> Stamp:
        """The circumstances in which the decisions were made."""
        return Stamp(self.at_ms, self.entropy, self.runtime, self.epoch)
