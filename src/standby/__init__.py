"""standby decides what an LLM service does when a model call fails, writes every step down as an event, and can
prove afterwards that it decided by its rules.

This is the whole public door; everything else may change. Names load what they need when they are first used,
so that the import itself costs nothing worth mentioning.

    open            open a log and begin to decide on it            -> Standby
    Standby         start turns, pick models, pin profiles, ask for usage stats
    TurnHandle      one turn: its next step, and what to report
    Policy, ModelChain, Profile         configuration as values; a credential without the credential
    Succeeded, Failed, Unknown, Reply   what a call came to; Effects is what it did to the world
    CallModel, Wait, Repair, SettleUnknown, Settled     the steps
    plan, apply     the two pure functions below, for hosts with their own storage
    verify          prove a log from its facts
    StandbyError    base of everything that standby refuses; TurnFailed is what the runner raises
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from standby.engine.apply import apply
    from standby.engine.plan import plan
    from standby.engine.reading.extract import Reply
    from standby.engine.steps import CallModel, Repair, Settled, SettleUnknown, Wait
    from standby.engine.verify import verify
    from standby.events.errors import StandbyError, TurnFailed
    from standby.events.policy import ModelChain, Policy
    from standby.events.vocabulary import Effects
    from standby.hosts.reports import Failed, Profile, Succeeded, Unknown
    from standby.hosts.service import Standby, open
    from standby.hosts.turns import TurnHandle

__all__ = [
    "CallModel",
    "Effects",
    "Failed",
    "ModelChain",
    "Policy",
    "Profile",
    "Repair",
    "Reply",
    "SettleUnknown",
    "Settled",
    "Standby",
    "StandbyError",
    "Succeeded",
    "TurnFailed",
    "TurnHandle",
    "Unknown",
    "Wait",
    "apply",
    "open",
    "plan",
    "verify",
]

_WHERE = {
    "standby.engine.apply": ("apply",),
    "standby.engine.reading.extract": ("Reply",),
    "standby.engine.plan": ("plan",),
    "standby.engine.steps": ("CallModel", "Repair", "SettleUnknown", "Settled", "Wait"),
    "standby.engine.verify": ("verify",),
    "standby.events.errors": ("StandbyError", "TurnFailed"),
    "standby.events.policy": ("ModelChain", "Policy"),
    "standby.events.vocabulary": ("Effects",),
    "standby.hosts.reports": ("Failed", "Profile", "Succeeded", "Unknown"),
    "standby.hosts.service": ("Standby", "open"),
    "standby.hosts.turns": ("TurnHandle",),
}
_MODULES = {name: module for module, names in _WHERE.items() for name in names}


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"standby has no {name!r}; its names are: {', '.join(__all__)}")
    value = globals()[name] = getattr(import_module(module), name)
    return value


def __dir__() -> list[str]:
    return __all__
