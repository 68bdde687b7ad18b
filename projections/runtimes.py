"""Runtimes: slots, their epochs, and what is process-local to them.

What the rules call in memory of a process (check throttles, sticky fallbacks, skip markers) belongs to a slot
in its present epoch and ends when the slot starts again. A commit of an ended epoch is refused.
"""

import msgspec

PROBES_KEPT = 256
"""Most providers whose last check a runtime remembers; the oldest goes first."""


class Runtime(msgspec.Struct, gc=False):
    """One slot."""

    epoch: int = 0
    at_ms: int = 0
    """Moment of its last commit: moments never fall within one runtime."""
    probes: dict[str, int] = {}
    """When the primary of a provider was last checked in spite of its blocks (PROBE-3)."""


def fold_start(runtime: Runtime, epoch: int) -> None:
    """The slot starts again: nothing of its former life is left."""
    runtime.epoch = epoch
    runtime.probes = {}


def fold_probe(runtime: Runtime, provider: str, at_ms: int) -> None:
    """A check of the provider's primary was admitted."""
    probes = {**runtime.probes, provider: at_ms}
    if len(probes) > PROBES_KEPT:
        del probes[min(probes, key=lambda key: probes[key])]
    runtime.probes = probes
