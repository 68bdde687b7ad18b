"""Profiles as the naive model sees them: what is blocked until when, and who may be tried."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from standby.events import decisions as d
from standby.events import facts as f
from standby.events.commit import Commit
from standby.events.policy import Policy
from standby.events.vocabulary import BlockKind, CredentialKind, Failure
from tests.properties.naive_words import (
    DAY,
    KIND_RANK,
    LADDER,
    MINUTE,
    PERMANENT,
    WHOLE_LADDER,
    Harm,
    Run,
    Scope,
    Talk,
    reason_of,
)

__all__ = ["Profiles"]


class Profiles:
    """What is known of credentials and their health, predicted from facts."""

    def __init__(self) -> None:
        self.now = 0
        self.policy = Policy()
        self.profiles: dict[str, f.ObservedProfile] = {}
        self.ever: dict[str, set[str]] = defaultdict(set)
        self.order: dict[str, tuple[str, ...]] = {}
        self.harm: dict[Scope, Harm] = {}
        self.cured: dict[tuple[str, str], int] = {}
        self.counts: dict[tuple[str, str], int] = {}
        self.last_failure: dict[str, int] = {}
        self.last_used: dict[str, int] = {}
        self.quota_at: dict[str, int] = {}
        self.talks: dict[str, Talk] = defaultdict(Talk)

    def _policy_adopted(self, fact: f.PolicyAdopted, said: Any, commit: Commit) -> None:
        self.policy = fact.policy

    def _profiles_observed(self, fact: f.ProfilesObserved, said: Any, commit: Commit) -> None:
        self.profiles = {one.alias: one for one in fact.profiles}
        self.order = dict(fact.order)
        for one in fact.profiles:
            self.ever[one.provider].add(one.alias)

    def _credential_removed(self, fact: f.CredentialRemoved, said: Any, commit: Commit) -> None:
        self.profiles.pop(fact.profile, None)
        self.order = {key: tuple(a for a in order if a != fact.profile) for key, order in self.order.items()}
        self._pins(said)

    def _quota_observed(self, fact: f.QuotaObserved, said: Any, commit: Commit) -> None:
        if not fact.valid or fact.checked_ms < max(
            self._cured(fact.profile, ""), self.quota_at.get(fact.profile, 0)
        ):
            return
        self.quota_at[fact.profile] = fact.checked_ms
        window = (fact.profile, "", Failure.RATE_LIMIT, BlockKind.WINDOW)
        if not fact.exhausted:
            self.harm.pop(window, None)
        elif fact.resets_at_ms is not None and fact.resets_at_ms > self.now:
            self.harm[window] = Harm(fact.resets_at_ms, fact.checked_ms)

    def blocked(self, profile: str, model: str, now: int) -> tuple[int, Failure] | None:
        """Until when a profile is blocked for a model, and by what."""
        found = [
            (harm.until, reason)
            for (whose, scope, reason, _), harm in self.harm.items()
            if whose == profile and scope in ("", model) and harm.until > now
        ]
        return max(found, key=lambda one: one[0], default=None)

    def _cured(self, profile: str, model: str) -> int:
        return max((at for (p, m), at in self.cured.items() if p == profile and model in ("", m)), default=0)

    def _heal(self, profile: str, model: str, started: int) -> None:
        """A call succeeded: what rests on older calls with the profile, for this model or all, is over."""
        if not profile:
            return
        for scope in [s for s, h in self.harm.items() if s[0] == profile and s[1] in ("", model)]:
            if self.harm[scope].evidence <= started:
                del self.harm[scope]
        for key in [key for key in self.counts if key[0] == profile]:
            del self.counts[key]
        self.cured[profile, model] = max(started, self.cured.get((profile, model), 0))
        self.last_used[profile] = max(self.now, self.last_used.get(profile, 0))

    def _hurt(self, run: Run, tried: d.AttemptStarted, fact: f.CallFailed, leads_on: bool) -> None:
        """What a failed call does to its profile."""
        reason, profile, model = reason_of(fact), tried.profile, tried.model
        if not profile or not fact.selected_profile:
            return
        if reason is Failure.RATE_LIMIT:
            waits = [wait.ms for wait in fact.evidence.waits]
            scope = (profile, model, reason, BlockKind.COOLDOWN)
            old = self.harm.get(scope)
            if not waits or fact.started_ms < self._cured(profile, model):
                return
            until = fact.received_ms + max(waits)
            if until > self.now and (old is None or until > old.until):
                alive = old is not None and old.until > self.now
                evidence = max(fact.started_ms, old.evidence) if old is not None and alive else fact.started_ms
                self.harm[scope] = Harm(until, evidence)
        elif reason is Failure.BILLING:
            self._climb(profile, "", reason, BlockKind.DISABLED, fact.started_ms, (10 * MINUTE,))
        elif reason is Failure.AUTH_PERMANENT:
            self._climb(profile, "", reason, BlockKind.DISABLED, fact.started_ms, PERMANENT)
        elif reason in WHOLE_LADDER:
            self._climb(profile, "", reason, BlockKind.COOLDOWN, fact.started_ms, LADDER)
        elif reason is Failure.MODEL_NOT_FOUND or (reason is Failure.TIMEOUT and leads_on):
            self._climb(profile, model, reason, BlockKind.COOLDOWN, fact.started_ms, LADDER)

    def _climb(
        self, profile: str, model: str, reason: Failure, kind: BlockKind, started: int, steps: tuple[int, ...]
    ) -> None:
        if started < self._cured(profile, model):
            return
        counter = (profile, reason.value if kind is BlockKind.DISABLED else "ladder")
        last = self.last_failure.get(profile)
        if last is not None and self.now - last > DAY:
            self.counts = {key: count for key, count in self.counts.items() if key[0] != profile}
        self.counts[counter] = self.counts.get(counter, 0) + 1
        self.last_failure[profile] = self.now
        scope = (profile, model, reason, kind)
        old = self.harm.get(scope)
        if old is not None and old.until > self.now:
            old.evidence = max(old.evidence, started)
        else:
            self.harm[scope] = Harm(self.now + steps[min(self.counts[counter], len(steps)) - 1], started)

    def usable(self, run: Run, provider: str) -> list[str]:
        """The profiles of a provider that could be used at all, best first, blocks not looked at."""
        known_profiles = [alias for alias, one in self.profiles.items() if one.provider == provider]
        stored = self.order.get(provider)
        # An order of names that are all unknown says nothing.
        explicit = (
            (stored if set(stored) & set(known_profiles) else None)
            if stored
            else run.policy.order.get(provider)
        )
        listed = list(explicit or known_profiles)
        found = []
        for alias in dict.fromkeys(listed):
            one = self.profiles.get(alias)
            if one is None or one.provider != provider or not one.usable or one.agent not in ("", "main"):
                continue
            expired = one.expires_ms is not None and one.expires_ms <= self.now
            if one.kind is CredentialKind.TOKEN and expired:
                continue
            stale = one.kind is CredentialKind.OAUTH and expired
            found.append((KIND_RANK[one.kind], stale, self.last_used.get(alias, 0), alias))
        if not explicit:
            found.sort(key=lambda one: one[:3])
        pin = self.talks[run.request.session].pins.get(provider)
        aliases = [one[3] for one in found]
        if pin is not None and pin.profile in aliases and not (pin.displaced and explicit):
            aliases.remove(pin.profile)
            aliases.insert(0, pin.profile)
        return aliases

    def free(self, run: Run, model: str) -> list[str]:
        """Those that are not blocked and not used up in this turn."""
        provider = model.partition("/")[0]
        tried = run.tried(model)
        return [
            alias
            for alias in self.usable(run, provider)
            if alias not in tried and self.blocked(alias, model, self.now) is None
        ]

    def _pins(self, said: tuple[d.Decision, ...]) -> None:
        for one in said:
            if isinstance(one, d.PinSet):
                self.talks[one.session].pins[one.provider] = one
            elif isinstance(one, d.PinCleared):
                self.talks[one.session].pins.pop(one.provider, None)
