"""`apply`: one commit becomes true.

Pure in the sense that counts: the new state depends on the old state and the commit alone. Everything has a
limit, and what is forgotten is forgotten by the commits' own time, so that every fold of the same log forgets
the same.
"""

from standby.engine.deciding import Draft
from standby.engine.fold import fold
from standby.engine.machine import RESTING, TERMINAL
from standby.engine.view import View
from standby.events.commit import Commit
from standby.events.decisions import TurnAnswered, TurnFailed
from standby.events.errors import LogTooNew, Refused, RuntimeEnded
from standby.events.facts import PolicyAdopted, RuntimeStarted

LOGIC = 1
"""Number of the decision code in this version (design point 5)."""

TURN_KEPT_MS = 60 * 60 * 1000
"""How long a settled turn is kept for late reports, by the time of later commits."""

TURNS_KEPT = 10_000
"""Most settled turns that are kept."""

RUNTIME_KEPT_MS = 7 * 24 * 60 * 60 * 1000
"""How long a silent runtime is kept once there are many."""

RUNTIMES_KEPT = 1_000


def check_stamp(view: View, commit_runtime: str, epoch: int, at_ms: int, fact: object) -> None:
    """Whether this runtime may write now.

    Raises:
        RuntimeEnded: its slot was started again.
        Refused: the moment lies before the runtime's last one.
    """
    runtime = view.runtimes.get(commit_runtime)
    known = 0 if runtime is None else runtime.epoch
    if isinstance(fact, RuntimeStarted):
        if fact.instance != commit_runtime or fact.epoch != epoch or epoch != known + 1:
            raise Refused(f"runtime {commit_runtime} cannot start epoch {epoch} after epoch {known}")
        return
    if epoch != known or runtime is None:
        raise RuntimeEnded(
            f"runtime {commit_runtime} wrote in epoch {epoch}, but its slot is in epoch {known}: "
            "another process started it; open the log again"
        )
    if at_ms < runtime.at_ms:
        raise Refused(f"runtime {commit_runtime} went back in time from {runtime.at_ms} to {at_ms}")


def apply(view: View, commit: Commit) -> None:
    """Fold a commit into the live view.

    Raises:
        Refused: the turn table does not allow a decision, or a turn would be left in mid-move.
        RuntimeEnded: the commit's runtime had been replaced.
        LogTooNew: the commit adopts a policy for decision code that this version does not have.
    """
    check_stamp(view, commit.runtime, commit.epoch, commit.at_ms, commit.fact)
    if isinstance(commit.fact, PolicyAdopted) and commit.fact.policy.logic > LOGIC:
        raise LogTooNew(
            f"the policy at position {view.position + 1} asks for decision logic "
            f"{commit.fact.policy.logic}, this version has logic up to {LOGIC}; use a newer standby"
        )
    stamp = commit.stamp()
    fold(view, commit.fact, stamp)
    for decision in commit.decisions:
        fold(view, decision, stamp)
    _finish(view, commit)


def adopt(view: View, draft: Draft, commit: Commit) -> None:
    """What `apply` does, by way of the draft in which the commit's decisions were just made on this view."""
    draft.settle(view)
    _finish(view, commit)


def _finish(view: View, commit: Commit) -> None:
    view.position += 1
    view.runtimes.edit(commit.runtime).at_ms = commit.at_ms
    _settle(view, commit)


def _settle(view: View, commit: Commit) -> None:
    key = getattr(commit.fact, "turn", "")
    turn = view.turns.get(key) if key else None
    if turn is not None:
        if turn.state not in RESTING:
            raise Refused(f"turn {key} is left in state {turn.state}, which owes a decision")
        if turn.state in TERMINAL and any(isinstance(d, TurnAnswered | TurnFailed) for d in commit.decisions):
            view.settled.append((commit.at_ms, key))
    settled = view.settled
    while settled and (len(settled) > TURNS_KEPT or settled[0][0] < commit.at_ms - TURN_KEPT_MS):
        view.turns.drop(settled.popleft()[1])
    if len(view.runtimes) > RUNTIMES_KEPT:
        for instance, runtime in list(view.runtimes.items()):
            if runtime.at_ms < commit.at_ms - RUNTIME_KEPT_MS:
                del view.runtimes[instance]
