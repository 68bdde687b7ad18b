"""Decision records on the standard logging module, for operators and exporters (OBS-3).

    observe(service.core)        # records go to the logger "standby.model_fallback"

Each record carries its fields as structured extras: a formatter that knows JSON writes them as they are, the
message of a plain one names the step. Candidates that fail to authenticate, or are passed over for it, turn
after turn would fill a log with one sentence: the same record is written once in 30 seconds, and the next one
says how many were held back.
"""

import logging
from collections.abc import Callable

from standby.engine.texts.decision_records import ChainStep, chain_steps, fields_of
from standby.engine.turn import Turn
from standby.events.commit import Commit
from standby.events.vocabulary import Failure
from standby.hosts.core import Core

LOGGER = "standby.model_fallback"
"""Name of the logger."""

COALESCED_MS = 30_000
"""How long a repeated auth record is held back, by the commits' own time."""

KEYS_KEPT = 100
"""Most records that are remembered; the oldest is forgotten first."""

_AUTH = (Failure.AUTH, Failure.AUTH_PERMANENT)
_QUIET = ("candidate_succeeded", "probe_cooldown_candidate")


class Observer:
    """Writes the records of commits.

    Args:
        turn_of: a turn of the log by its id, or None if it is gone.
        logger: where records go.
    """

    def __init__(self, turn_of: Callable[[str], Turn | None], logger: logging.Logger) -> None:
        self._turn_of = turn_of
        self._logger = logger
        self._held: dict[tuple[str, str, str], tuple[int, int]] = {}
        """Moment of the record that was written last, and how many were held back since."""

    def __call__(self, commit: Commit) -> None:
        """Write what a commit decided about candidates."""
        key = getattr(commit.fact, "turn", "")
        turn = self._turn_of(key) if key else None
        if turn is None:
            return
        for step in chain_steps(commit, turn):
            held = self._coalesce(step, commit.at_ms)
            if held is None:
                continue
            fields = fields_of(step, turn)
            if held:
                fields["suppressed"] = held
            level = logging.INFO if step.decision in _QUIET else logging.WARNING
            self._logger.log(
                level, "model_fallback_decision: %s %s", step.decision, step.candidate, extra=fields
            )

    def _coalesce(self, step: ChainStep, at_ms: int) -> int | None:
        """How many records like this one were held back before it; None holds it back, too."""
        if step.reason not in _AUTH:
            return 0
        key = (step.decision, step.candidate, step.reason.value)
        written, held = self._held.get(key, (None, 0))
        if written is not None and at_ms - written < COALESCED_MS:
            self._held[key] = (written, held + 1)
            return None
        self._held.pop(key, None)
        self._held[key] = (at_ms, 0)
        if len(self._held) > KEYS_KEPT:
            del self._held[next(iter(self._held))]
        return held


def observe(core: Core, logger: logging.Logger | None = None) -> Observer:
    """Write the records of everything that this core decides from now on."""
    observer = Observer(lambda key: core.view.turns.get(key), logger or logging.getLogger(LOGGER))
    core.watch(observer)
    return observer
