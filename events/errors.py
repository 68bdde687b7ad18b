"""The exceptions of standby, one small tree.

    StandbyError                     anything that standby itself refuses; the command line exits with status 2
    ├── BadInput                     what the caller gave cannot be used
    │   ├── BadPolicy                a setting is unknown, misspelt or impossible (names file, key and line)
    │   ├── BadReport                a fact that makes no sense: unknown turn, broken value
    │   └── BadScript                a scripted provider or scenario file is wrong
    ├── LogError                     something about the log itself
    │   ├── DamagedLog               bytes, hash or shape are not what they were (names the position)
    │   ├── ForeignFile              the file is not a standby log
    │   ├── LogTooNew                written by a newer format or logic than this version knows
    │   ├── LogTooOld                written by a version whose format is no longer read
    │   └── LogBusy                  another process held the write lock for too long
    ├── RuntimeEnded                 this runtime's slot was started again elsewhere
    ├── Refused                      the turn machine or a re-decision does not allow this commit
    ├── TurnFailed                   raised by the runner when a turn fails; carries all attempt records
    ├── AttemptFailed                one failed attempt, as the cause of the turn's failure
    └── TurnLost                     the turn goes on, or ended, where its answer cannot be had from here

Each message names what happened, to what, and what to do about it.
"""

from typing import Any


class StandbyError(Exception):
    """Base of everything that standby raises on purpose."""


class BadInput(StandbyError):
    """What the caller gave cannot be used; nothing was written."""


class BadPolicy(BadInput):
    """A policy or settings file is wrong; the message names file, key and line where known."""


class BadReport(BadInput):
    """A fact that makes no sense where it is reported; nothing was written."""


class BadScript(BadInput):
    """A scripted provider or a scenario file is wrong."""


class LogError(StandbyError):
    """The log cannot be used as asked."""


class DamagedLog(LogError):
    """A stored commit is not what was written.

    `position` is the first position that fails (None if it is not about one commit).
    """

    def __init__(self, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.position = position


class ForeignFile(LogError):
    """The file exists but is not a log of standby."""


class LogTooNew(LogError):
    """The log was written by a newer format or decision logic; it was not touched."""


class LogTooOld(LogError):
    """The log was written by a version whose format is no longer read; it was not touched."""


class LogBusy(LogError):
    """The write lock could not be had in time."""


class RuntimeEnded(StandbyError):
    """The slot of this runtime was started again, so that its commits are refused."""


class Refused(StandbyError):
    """A commit that the turn machine or the recomputation does not allow (`position` in the log)."""

    def __init__(self, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.position = position


class AttemptFailed(StandbyError):
    """An attempt of a turn failed; `attempt` is its record (`engine.turn.Attempt`, with the profile's name)."""

    def __init__(self, message: str, attempt: Any) -> None:
        super().__init__(message)
        self.attempt = attempt


class TurnFailed(StandbyError):
    """A turn ended without an answer (FLOW-14). Its `__cause__` is the first attempt that failed (OURS-9).

    The message is for the user and holds no provider's words. `settled` is the whole record
    (`engine.steps.Settled`): attempts, skips, the reason and the kind of end. `soonest_ms` and `soonest_model`
    say when which candidate can be tried again, as far as is known (OURS-10).
    """

    def __init__(self, message: str, settled: Any) -> None:
        super().__init__(message)
        self.settled = settled
        self.turn: str = settled.turn
        self.soonest_ms: int | None = settled.soonest_ms
        self.soonest_model: str = settled.soonest_model


class TurnLost(StandbyError):
    """Nobody here can say what the turn's answer is: another runtime took the turn over, or it was answered
    before and answers are not kept. The log holds how it went on (`turn` is its id)."""

    def __init__(self, message: str, turn: str) -> None:
        super().__init__(message)
        self.turn = turn
