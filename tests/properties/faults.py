"""Faults to plant: each makes the engine break one invariant in a way that somebody could write by mistake.

A fault is a small patch of one function. `planted` puts it in for a while; live decisions and recomputation run
the same faulty code, so that only the naive model, or the log itself, can tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

import msgspec

from standby.engine import (
    apply,
    blocks,
    choose,
    judge,
    notices,
    pins,
    plan,
    probe,
    recovery,
    retry,
    select,
    stickiness,
)
from standby.engine.rulesets import HealthRule
from standby.events.decisions import BlockSet, NoticeDue, StickyEnded
from standby.events.vocabulary import Effects
from standby.projections import health, sessions

__all__ = ["FAULTS", "Fault", "planted"]


class Fault(NamedTuple):
    """What is patched where, and the invariant that has to notice."""

    name: str
    invariant: int
    patches: Callable[[], list[Any]]
