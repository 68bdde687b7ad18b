"""What the steps of a scenario do, other than requesting turns: a user, an operator or a host says something.

A sub-command of the player for each kind of step. What is reported about a turn goes in through the runtime
that owns it, unless the step names another one.
"""

from collections.abc import Callable
from typing import Protocol

import msgspec

from standby.events import facts as f
from standby.events.errors import BadInput
from standby.events.vocabulary import Effects
from standby.hosts.reports import Profile as ServiceProfile
from standby.hosts.service import Standby, session_name
from standby.hosts.settings import Settings
from standby.hosts.simulate.expect import check_health, check_status
from standby.hosts.simulate.outcomes import named_reply
from standby.hosts.simulate.scenario import Compaction, Profile, Quota, Recovering, Scenario, Step
from standby.hosts.turns import TurnHandle


class Credentials(msgspec.Struct):
    """The credentials that there are now, as the scenario says it."""

    profiles: list[Profile]
    order: dict[str, list[str]]

    def observe(self, service: Standby, start_ms: int) -> None:
        """Report them."""
        service.observe(
            [
                ServiceProfile(
                    name=one.name,
                    provider=one.provider or one.name.partition(":")[0],
                    kind=one.kind,
                    expires_ms=None if one.expires is None else start_ms + one.expires,
                    usable=one.usable,
                    inline=one.inline,
                    agent=one.agent,
                )
                for one in self.profiles
            ],
            self.order,
        )


class World(Protocol):
    """What steps act on."""

    scenario: Scenario
    now_ms: int
    credentials: Credentials
    problems: list[str]

    def service(self, instance: str) -> Standby:
        """The door of a runtime."""

    def handle(self, turn: str, instance: str) -> TurnHandle:
        """A turn, by the runtime that owns it unless `slot` names another one."""

    def restart(self, instance: str) -> None:
        """A runtime ends and starts again."""

    def take_over(self, turn: str, instance: str) -> None:
        """A runtime goes on with a turn of another one."""


def act(world: World, step: Step, number: int, changed: Settings | None) -> None:
    """Let one step happen; `changed` holds the policy that it adopts."""
    service = world.service(step.runtime or "main")
    if _session(service, step) or _turn(world, step):
        return
    if changed is not None:
        core = service.core
        with core.group() as transaction:
            core.adopt(changed.policy_with(lambda name: core.alias("profile", name, transaction)))
    elif step.profiles is not None or step.order is not None:
        known = world.credentials
        world.credentials = Credentials(
            known.profiles if step.profiles is None else step.profiles,
            known.order if step.order is None else step.order,
        )
        world.credentials.observe(service, world.scenario.start_ms)
    elif step.remove:
        left = [one for one in world.credentials.profiles if one.name != step.remove]
        world.credentials = Credentials(left, world.credentials.order)
        service.remove_profile(step.remove)
    elif step.quota is not None:
        _quota(world, service, step.quota)
    elif step.restart:
        world.restart(step.runtime or "main")
    elif step.status is not None:
        world.problems += check_status(service, step.status, f"steps[{number}]")
    elif step.health is not None:
        world.problems += check_health(service, step.health, world.scenario.start_ms, f"steps[{number}]")


def _session(service: Standby, step: Step) -> bool:
    """What a user does to a session."""
    if (select := step.select) is not None:
        service.select_model(select.session, select.model or None, profile=select.profile, agent=select.agent)
    elif step.clear is not None:
        service.clear_model(step.clear.session, agent=step.clear.agent)
    elif (pin := step.pin) is not None:
        service.pin(pin.session, pin.provider, pin.profile or None, agent=pin.agent)
    elif step.reset is not None:
        service.reset(step.reset.session, kind=step.reset.kind, agent=step.reset.agent)
    elif (new := step.create) is not None:
        service.create_session(new.session, parent=new.parent, model=new.model, agent=new.agent)
    elif step.compaction is not None:
        _compaction(service, step.compaction)
    else:
        return False
    return True


def _compaction(service: Standby, said: Compaction) -> None:
    with service.core.group() as transaction:
        alias = service.core.alias("session", session_name(said.agent, said.session), transaction)
        service.core.submit(f.CompactionCompleted(session=alias, count=said.count))


def _turn(world: World, step: Step) -> bool:
    """What is reported about a turn."""
    for name, report in _REPORTS.items():
        if key := getattr(step, name):
            report(world.handle(key, step.runtime))
            return True
    if step.take_over:
        world.take_over(step.take_over, step.runtime or "main")
    elif step.recorded is not None:
        world.handle(step.recorded.turn, step.runtime).event_recorded(step.recorded.stored)
    elif step.recovering is not None:
        _recovering(world, step.recovering, step.runtime)
    else:
        return False
    return True


def _recovering(world: World, said: Recovering, instance: str) -> None:
    handle = world.handle(said.turn, instance)
    attempts = handle.state.attempts
    if not attempts:
        raise BadInput(f"turn {said.turn} has made no attempt yet")
    handle.runtime_recovering(named_reply(attempts[-1].model, said.kind, world.now_ms))


_REPORTS: dict[str, Callable[[TurnHandle], object]] = {
    "cancel": TurnHandle.cancel,
    "deadline": TurnHandle.deadline_passed,
    "no_progress": TurnHandle.no_progress,
    "response": TurnHandle.response_completed,
    "effects": lambda handle: handle.effects_begun(Effects.POSSIBLE),
    "admitted": TurnHandle.writer_admitted,
}


def _quota(world: World, service: Standby, said: Quota) -> None:
    alias = service.core.known_alias("profile", said.profile)
    if alias is None:
        raise BadInput(f"the log does not know the profile {said.profile!r} yet")
    service.core.submit(
        f.QuotaObserved(
            profile=alias,
            checked_ms=world.now_ms,
            valid=said.valid,
            exhausted=said.exhausted,
            resets_at_ms=None if said.resets is None else world.now_ms + said.resets,
        )
    )
