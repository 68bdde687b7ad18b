"""What must hold, said again in the plainest way, by somebody who has not read the engine.

`Naive` is shown a log commit by commit and keeps a few dicts. It predicts from the *facts* what is blocked
until when, which model is selected, who may be tried and what is told, and raises `Violation` at the first
commit that does not fit, so that every prefix of a log has been checked. It imports the words of the log and
nothing that decides. `compare` holds its own picture against what a live system says of itself.
"""

from __future__ import annotations

from typing import Any

from standby.events import decisions as d
from standby.events import facts as f
from standby.events.commit import Commit
from standby.events.vocabulary import Effects, Failure, SelectionSource, SkipBecause, Surface, TurnKind
from tests.properties.naive_profiles import Profiles
from tests.properties.naive_words import (
    DAY,
    GIVES_CHECK_BACK,
    MINUTE,
    NOT_A_FAILURE,
    ORDINARY,
    PERSISTENT,
    REASONS,
    SECOND,
    Picture,
    Run,
    Stuck,
    Violation,
    must,
    reason_of,
)

__all__ = ["REASONS", "Naive", "Picture", "Violation"]


class Naive(Profiles):
    """The naive model; `see` each commit once, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.position = 0
        self.epochs: dict[str, int] = {}
        self.slot_time: dict[str, int] = {}
        self.check_at: dict[tuple[str, str], int] = {}
        self.runs: dict[str, Run] = {}

    # ---- a commit --------------------------------------------------------------------------------------

    def see(self, commit: Commit) -> None:
        self.position += 1
        self.now = commit.at_ms
        fact, said = commit.fact, commit.decisions
        instance = commit.runtime
        if isinstance(fact, f.RuntimeStarted):
            must(11, fact.epoch == self.epochs.get(instance, 0) + 1, "an epoch was left out or used twice")
            self.epochs[instance] = fact.epoch
            for talk in self.talks.values():
                talk.stuck.pop(instance, None)
            self.check_at = {key: at for key, at in self.check_at.items() if key[0] != instance}
        must(11, self.epochs.get(instance) == commit.epoch, "a runtime that had ended wrote")
        must(11, self.slot_time.get(instance, 0) <= commit.at_ms, "time fell within a runtime")
        self.slot_time[instance] = commit.at_ms
        getattr(self, f"_{type(fact).__struct_config__.tag}", self._nothing)(fact, said, commit)
        for one in said:
            must(15, one.rules, f"{one} names no rule")

    def _nothing(self, fact: f.Fact, said: tuple[d.Decision, ...], commit: Commit) -> None:
        """The naive model has nothing to say about this fact."""

    # ---- sessions --------------------------------------------------------------------------------------

    def _model_selected(self, fact: f.ModelSelected, said: Any, commit: Commit) -> None:
        talk = self.talks[fact.session]
        talk.model, talk.switches = fact.model, talk.switches + 1
        talk.chosen_live = talk.last in self.runs and not self.runs[talk.last].over
        now = fact.model or self.policy.models.primary
        talk.stuck = {instance: one for instance, one in talk.stuck.items() if one.selected == now}
        self._pins(said)

    def _profile_pinned(self, fact: f.ProfilePinned, said: Any, commit: Commit) -> None:
        self._pins(said)

    def _session_reset(self, fact: f.SessionReset, said: Any, commit: Commit) -> None:
        self._pins(said)
        left = [pin for pin in self.talks[fact.session].pins.values() if not pin.user]
        must(13, not left, "an automatic pin outlived a reset")

    def _compaction_completed(self, fact: f.CompactionCompleted, said: Any, commit: Commit) -> None:
        must(13, not said, "a compaction decided something, though it changes no profile")

    # ---- turns -----------------------------------------------------------------------------------------

    def _turn_requested(self, fact: f.TurnRequested, said: Any, commit: Commit) -> None:
        talk, policy = self.talks[fact.session], self.policy
        primary, fallbacks = policy.models.primary, policy.models.fallbacks
        selected = fact.model or talk.model or primary
        explicit = (
            fact.source in (SelectionSource.USER, SelectionSource.DEFAULT) if fact.model else bool(talk.model)
        )
        strict = fact.locked or fact.fallbacks == () or (
            fact.fallbacks is None and (fallbacks == () or (explicit and selected != primary))
        )  # fmt: skip
        if strict:
            allowed: tuple[str, ...] = (selected,)
        elif fact.fallbacks is not None:
            allowed = (selected, *fact.fallbacks)
        else:
            allowed = (selected, *(fallbacks or ()), primary)
        run = Run(fact, policy, (commit.runtime, commit.epoch), talk.switches, selected, strict)
        run.allowed = tuple(dict.fromkeys(allowed))
        self.runs[fact.turn] = run
        planned = next(one for one in said if isinstance(one, d.ChainPlanned))
        run.chain = [one.model for one in planned.candidates]
        must(2, planned.strict == strict, f"strict is {planned.strict}, not {strict}")
        must(2, planned.selected == selected, f"{planned.selected} was taken for the selected {selected}")
        must(2, set(run.chain) == set(run.allowed), f"{run.chain} may not be tried, only {run.allowed}")
        first = self._sticky_for(run, commit.runtime, talk.chosen_live)
        talk.last, talk.chosen_live = fact.turn, False
        run.sticky_first = planned.candidates[0].origin == "sticky"
        expected = [first] if first else []
        expected += [model for model in run.allowed if model != first]
        must(8 if first or run.sticky_first else 2, run.chain == expected, f"{run.chain} instead of {expected}")
        self._follow(run, said, commit)

    def _sticky_for(self, run: Run, instance: str, chosen_live: bool) -> str | None:
        talk, request = self.talks[run.request.session], run.request
        stuck = talk.stuck.get(instance)
        if stuck is None:
            return None
        if self.now >= stuck.until:
            del talk.stuck[instance]
            return None
        if request.kind not in ORDINARY or request.rerouted or request.image:
            return None
        if chosen_live and not request.model:
            del talk.stuck[instance]
            return None
        if stuck.selected != run.selected:
            if not request.model:
                del talk.stuck[instance]
            return None
        if stuck.model in run.allowed[1:]:
            return stuck.model
        if not (request.locked or request.fallbacks is not None or request.model):
            del talk.stuck[instance]
        return None

    def _report(self, fact: Any, said: tuple[d.Decision, ...], commit: Commit) -> Run | None:
        """The turn that a report moves, or None when it has to be kept."""
        run = self.runs[fact.turn]
        kept = next((one for one in said if isinstance(one, d.ReportKept)), None)
        moves = (
            run.calling and fact.attempt == len(run.attempts) and run.owner == (commit.runtime, commit.epoch)
        )
        must(6, moves == (kept is None), f"{fact} was {'kept' if kept else 'obeyed'}")
        must(11, fact not in run.reported, "the same report was written twice")
        run.reported.append(fact)
        if getattr(fact, "effects", Effects.NONE) is not Effects.NONE or getattr(fact, "delivered", False):
            run.unsafe = True
        return run if moves else None

    def _call_failed(self, fact: f.CallFailed, said: Any, commit: Commit) -> None:
        run = self.runs[fact.turn]
        tried = run.attempts[fact.attempt - 1]
        moves = self._report(fact, said, commit) is not None
        others = [alias for alias in self.free(run, tried.model) if alias != tried.profile]
        # A timeout counts only once the same model is not tried again, and only if another way leads on.
        leads_on = len(run.chain) > 1 or (moves and not run.unsafe and bool(others))
        waits = any(isinstance(one, d.RetryScheduled) for one in said)
        self._hurt(run, tried, fact, leads_on=leads_on and not waits)
        if moves:
            run.calling = False
            read = next(one for one in said if isinstance(one, d.FailureClassified))
            must(15, read.reason is reason_of(fact), f"{fact.evidence} was read as {read.reason}")
            run.reasons[fact.attempt] = read.reason
            if tried.probe and read.reason in GIVES_CHECK_BACK:
                run.probed[tried.model.partition("/")[0]] -= 1
            self._follow(run, said, commit)

    def _call_unknown(self, fact: f.CallUnknown, said: Any, commit: Commit) -> None:
        run = self._report(fact, said, commit)
        if run is not None:
            run.calling = False
            run.reasons[fact.attempt] = Failure.INTERRUPTED
            self._follow(run, said, commit)

    def _live_switch_requested(self, fact: f.LiveSwitchRequested, said: Any, commit: Commit) -> None:
        run = self._report(fact, said, commit)
        if run is not None:
            run.calling = False
            self._follow(run, said, commit)

    def _effects_begun(self, fact: f.EffectsBegun, said: Any, commit: Commit) -> None:
        self._report(fact, said, commit)

    def _response_completed(self, fact: f.ResponseCompleted, said: Any, commit: Commit) -> None:
        run = self._report(fact, said, commit)
        if run is not None:
            run.responses += 1

    def _call_succeeded(self, fact: f.CallSucceeded, said: Any, commit: Commit) -> None:
        run = self._report(fact, said, commit)
        tried = self.runs[fact.turn].attempts[fact.attempt - 1]
        self._heal(tried.profile, tried.model, fact.started_ms)
        if run is None:
            return
        run.calling, run.over = False, True
        answer = next(one for one in said if isinstance(one, d.TurnAnswered))
        must(2, answer.model == tried.model, "another model than the one tried is said to have answered")
        self._stick(run, tried.model, said, commit)
        self._tell(run, tried.model, said)

    def _stick(self, run: Run, answered: str, said: tuple[d.Decision, ...], commit: Commit) -> None:
        """A fallback answered: does the session stay on it?"""
        talk, request = self.talks[run.request.session], run.request
        stuck = talk.stuck.get(commit.runtime)
        settings = run.policy.stickiness
        idle = 10 * MINUTE if settings.idle_ms is None else settings.idle_ms
        cap = 30 * MINUTE if settings.cap_ms is None else settings.cap_ms
        same = stuck is not None and (stuck.model, stuck.selected) == (answered, run.selected)
        goes_on = stuck is not None and same and (self.now < stuck.until or run.sticky_first)
        failed = [run.reasons.get(a.attempt) for a in run.attempts if a.model == run.selected]
        limited = failed[-1] is Failure.RATE_LIMIT if failed else any(
            skip.model == run.selected
            and skip.reason is Failure.RATE_LIMIT
            and skip.because in (SkipBecause.COOLDOWN, SkipBecause.PROBED_ALREADY)
            for skip in run.skips
        )  # fmt: skip
        ordinary = request.kind in ORDINARY and not request.rerouted and not request.image
        wanted = (
            answered != run.selected
            and ordinary
            and not run.strict
            and run.switches == talk.switches
            and (goes_on or limited)
        )
        first = stuck.first if stuck is not None and goes_on else self.now
        until = min(self.now + idle, first + cap)
        due = [one for one in said if isinstance(one, d.StickySet)]
        must(8, bool(due) == (wanted and until > self.now), f"{due} although wanted is {wanted}")
        for one in due:
            must(8, (one.model, one.first_ms, one.until_ms) == (answered, first, until), f"{one}, not {until}")
            talk.stuck[commit.runtime] = Stuck(answered, run.selected, first, until)

    def _tell(self, run: Run, answered: str, said: tuple[d.Decision, ...]) -> None:
        """Is there something to tell?"""
        due = [one for one in said if isinstance(one, d.NoticeDue)]
        if run.request.kind in (TurnKind.COMPACTION, TurnKind.BACKGROUND):
            must(7, not due, "an internal turn told something")
            return
        talk = self.talks[run.request.session]
        told = talk.told if talk.told is not None and talk.told[0] == run.selected else None
        back = answered == run.selected
        wanted = told is not None if back else told != (run.selected, answered)
        must(7, len(due) == int(wanted), f"{due}, last told {talk.told}, answered by {answered}")
        for one in due:
            hidden = run.request.surface in (Surface.GROUP, Surface.CHANNEL)
            must(7, one.quiet == hidden, "shown in a group or channel, or hidden from a direct surface")
            must(7, one.returned == back and one.selected == run.selected, f"{one} names the wrong models")
            must(7, one.active == (told[1] if back and told else answered), f"{one} names the wrong models")
            talk.told = None if back else (run.selected, answered)

    def _wait_ended(self, fact: f.WaitEnded, said: Any, commit: Commit) -> None:
        self._follow(self.runs[fact.turn], said, commit)

    def _repair_finished(self, fact: f.RepairFinished, said: Any, commit: Commit) -> None:
        self._follow(self.runs[fact.turn], said, commit)

    def _turn_cancelled(self, fact: f.TurnCancelled, said: Any, commit: Commit) -> None:
        run = self.runs[fact.turn]
        run.cancelled, run.calling = True, False
        self._follow(run, said, commit)

    def _deadline_passed(self, fact: f.DeadlinePassed, said: Any, commit: Commit) -> None:
        run = self.runs[fact.turn]
        run.cancelled, run.calling = True, False
        self._follow(run, said, commit)

    def _turn_taken_over(self, fact: f.TurnTakenOver, said: Any, commit: Commit) -> None:
        self.runs[fact.turn].owner = (commit.runtime, commit.epoch)

    # ---- what a turn does next ---------------------------------------------------------------------------

    def _follow(self, run: Run, said: tuple[d.Decision, ...], commit: Commit) -> None:
        """Every decision about the course of a turn, in order."""
        must(6, not run.over, "a turn that was over goes on")
        admitted: d.ProbeAdmitted | None = None
        for one in said:
            if isinstance(one, d.CandidateSkipped):
                self._skip(run, one, commit)
            elif isinstance(one, d.ChainAdvanced):
                must(6, not run.unsafe, "the chain went on after an unsafe attempt")
                must(1, run.index < one.index < len(run.chain), "the chain went back")
                self._left(run, commit) if not one.redirect else None
                run.index = one.index
            elif isinstance(one, d.ChainReordered):
                run.chain = [candidate.model for candidate in one.candidates]
                must(2, set(run.chain) == set(run.allowed), "a new order brought another model")
            elif isinstance(one, d.ProbeAdmitted):
                admitted = one
            elif isinstance(one, d.AttemptStarted):
                self._attempt(run, one, admitted, commit)
                self._pins([pin for pin in said if isinstance(pin, d.PinSet)])  # type: ignore[arg-type]  # the harness takes it
            elif isinstance(one, d.RetryScheduled):
                self._wait(run, one)
            elif isinstance(one, d.RepairOrdered):
                run.repairs += 1
                must(1, run.repairs <= 2 * len(run.chain), "repairs without end")
            elif isinstance(one, d.TurnFailed):
                run.over = True
                if one.end not in NOT_A_FAILURE:
                    self._left(run, commit)

    def _left(self, run: Run, commit: Commit) -> None:
        """The candidate failed; if it was the sticky fallback, that is over (for the slot that writes)."""
        stuck = self.talks[run.request.session].stuck
        held = stuck.get(commit.runtime)
        if run.sticky_first and run.index == 0 and held is not None and held.model == run.chain[0]:
            del stuck[commit.runtime]

    def _skip(self, run: Run, one: d.CandidateSkipped, commit: Commit) -> None:
        must(1, one.index == run.index, "another candidate than the present one was skipped")
        if one.because in (SkipBecause.COOLDOWN, SkipBecause.AUTH, SkipBecause.PROBED_ALREADY):
            free = self.free(run, one.model)
            must(13, not free, f"{one.model} was passed over although {free} could be tried")
        self._left(run, commit)
        run.skips.append(one)
        run.index += 1

    def _attempt(
        self, run: Run, one: d.AttemptStarted, admitted: d.ProbeAdmitted | None, commit: Commit
    ) -> None:
        last = run.attempts[-1] if run.attempts else None
        must(2, one.model in run.allowed and one.model == run.chain[run.index], f"{one.model} was tried")
        must(6, not run.cancelled, "an attempt after a cancel")
        if run.unsafe:
            may = run.request.continuable or one.finalize
            must(6, one.continuation and may, "an unsafe attempt was replayed")
            must(6, last is not None and last.model == one.model, "another model continued an unsafe attempt")
        must(6, one.attempt == len(run.attempts) + 1, "attempts are not counted without gaps")
        block = self.blocked(one.profile, one.model, self.now) if one.profile else None
        if one.probe:
            self._check(run, one, admitted, commit)
        else:
            must(3, block is None, f"{one.profile} is blocked for {one.model} until {block}")
        again = last is not None and (last.model, last.profile) == (one.model, one.profile)
        must(1, again or one.profile not in run.tried(one.model), "a used-up profile was taken again")
        if not one.probe and not again and one.profile:
            best = self.free(run, one.model)
            must(13, best[:1] == [one.profile], f"{one.profile} was taken, the order is {best}")
        run.finals += one.finalize
        run.attempts.append(one)
        run.started.append(self.now)
        run.calling = True
        calls, _ = self.bound(run)
        must(1, len(run.attempts) <= calls, f"{len(run.attempts)} attempts, at most {calls} were to be")

    def _check(self, run: Run, one: d.AttemptStarted, admitted: d.ProbeAdmitted | None, commit: Commit) -> None:
        provider = one.model.partition("/")[0]
        must(3, admitted is not None and admitted.profile == one.profile, "a check that nobody admitted")
        blocks = [
            (self.blocked(alias, one.model, self.now) or (0, None))
            for alias in self.usable(run, provider)
            if alias == one.profile or alias not in run.tried(one.model)
        ]
        must(3, all(until for until, _ in blocks), "a check although a profile was free")
        must(3, not {reason for _, reason in blocks} <= PERSISTENT, "a check of a provider that cannot sign in")
        run.probed[provider] += 1
        must(3, run.probed[provider] <= 1, f"{provider} was checked twice in a turn")
        if admitted is not None and admitted.primary:
            must(3, one.model == run.selected, "a sibling was checked as the primary")
            key = (commit.runtime, provider)
            until, reason = self.blocked(one.profile, one.model, self.now) or (self.now, None)
            alone = len(run.chain) == 1 and reason is Failure.BILLING
            margin, interval = run.policy.probes.margin_ms, run.policy.probes.interval_ms
            margin = 2 * MINUTE if margin is None else margin
            interval = 30 * SECOND if interval is None else interval
            must(3, alone or until - self.now <= margin, "a check long before the end of the block")
            must(3, self.now - self.check_at.get(key, -DAY) >= interval, "checks faster than the throttle")
            self.check_at[key] = self.now
        else:
            before = {model.partition("/")[0] for model in run.chain[: run.index]}
            must(3, provider in before, "a fallback of another provider was checked")

    def _wait(self, run: Run, one: d.RetryScheduled) -> None:
        must(6, not run.cancelled, "a wait after a cancel")
        must(6, not run.unsafe or run.request.continuable, "a wait for a replay of an unsafe attempt")
        run.waits += 1
        _, waits = self.bound(run)
        must(1, run.waits <= waits, f"{run.waits} waits, at most {waits} were to be")
        last = run.attempts[-1]
        block = self.blocked(last.profile, last.model, one.until_ms) if last.profile else None
        must(3, block is None, "a wait that ends while the profile is blocked")

    def bound(self, run: Run) -> tuple[int, int]:
        """Most attempts and most waits that a turn can have, by its chain, the profiles and the budgets.

        Each candidate can wait as often as the larger of its two budgets allows, once more for each response
        that was completed meanwhile (REC-3), and be tried once with each profile, after each wait and repair.
        """
        recovery = run.policy.recovery
        rate_limit = 15 if recovery.rate_limit_retries is None else recovery.rate_limit_retries
        transient = 8 if recovery.transient_retries is None else recovery.transient_retries
        wanted = run.request.max_retries if run.request.local_settings else None
        wanted = recovery.max_retries if wanted is None else wanted
        # An override is capped for rate limits only (REC-4).
        retries = max(rate_limit, transient) if wanted is None else wanted
        waits = retries * (len(run.chain) + run.responses)
        profiles = 0
        for model in run.chain:
            # A provider without any profile is called without one, and may get some meanwhile.
            bare = {""} & run.tried(model)
            profiles += max(1, len(self.ever[model.partition("/")[0]] | bare))
        return waits + profiles + run.repairs + run.finals, waits

    # ---- the live system -----------------------------------------------------------------------------------

    def compare(self, live: Picture, now: int, models: tuple[str, ...]) -> None:
        """Hold what a live system thinks against this."""
        for profile in {scope[0] for scope in self.harm} | set(self.profiles):
            for model in models:
                mine, theirs = self.blocked(profile, model, now), live.blocked(profile, model, now)
                if mine is None and theirs is None:
                    continue
                timed = Failure.RATE_LIMIT in {one[1] for one in (mine, theirs) if one is not None}
                same = mine is not None and theirs is not None and mine[0] == theirs[0]
                must(4 if timed else 5, same, f"{profile} is blocked for {model} until {mine}, not {theirs}")
        for session, talk in self.talks.items():
            must(2, live.selected.get(session, "") == talk.model, f"the selection of {session} was changed")
            must(7, live.told.get(session) == talk.told, f"{session} was told {live.told.get(session)}")
        mine_stuck = {
            (session, instance): (stuck.model, stuck.until)
            for session, talk in self.talks.items()
            for instance, stuck in talk.stuck.items()
            if stuck.until > now
        }
        theirs_stuck = {key: value for key, value in live.stuck.items() if value[1] > now}
        must(8, mine_stuck == theirs_stuck, f"{theirs_stuck} sticks, not {mine_stuck}")
