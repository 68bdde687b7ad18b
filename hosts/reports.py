"""What a host says to the door, as values: what a call came to, and which credentials there are."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from standby.engine.reading.extract import Reply
from standby.events.facts import Usage
from standby.events.vocabulary import CredentialKind, Effects, StopKind, ToolReceipt


class Succeeded(msgspec.Struct, frozen=True, kw_only=True):
    """The call was completed. `effects` says what it did to the world besides answering."""

    effects: Effects = Effects.NONE
    usage: Usage | None = None
    stop: StopKind = StopKind.STOP
    started_ms: int | None = None
    """When the call began; the attempt's start if not given."""
    writer_admitted: bool = True
    fallback_worthy: bool = False
    served: str = ""
    """The model that the provider went to by itself, where the step allowed it (ADV-13)."""


class Failed(msgspec.Struct, frozen=True, kw_only=True):
    """The call failed with this reply. `delivered` says that part of an answer reached the caller, and
    `effects` what the call did or may have done: both decide whether anything may be replayed (REC-8)."""

    reply: Reply
    effects: Effects = Effects.NONE
    delivered: bool = False
    started_ms: int | None = None
    received_ms: int | None = None
    provider_started: bool = True
    usage: Usage | None = None
    repairable: bool = False
    format_repair: bool = False
    selected_profile: bool = True
    finished_work: bool = False
    receipts: tuple[ToolReceipt, ...] = ()
    """Operations that are not safe to repeat, and how far each came (REC-8)."""
    bare: bool = False
    """What the attempt left is empty or reasoning alone (NOTE-8)."""
    secrets: tuple[str, ...] = ()
    """Secrets that the call used, so that they can be masked wherever the reply quotes them. Never printed."""

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [(name, getattr(self, name)) for name in self.__struct_fields__ if name != "secrets"]

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"Failed({shown})"


class Unknown(msgspec.Struct, frozen=True, kw_only=True):
    """Nobody saw how the call ended."""

    effects: Effects


class Switched(msgspec.Struct, frozen=True, kw_only=True):
    """The call was left because the user switched the model while it ran."""

    model: str
    effects: Effects = Effects.NONE


Outcome = Succeeded | Failed | Unknown | Switched


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """A credential as standby needs to know it: never the credential itself."""

    name: str
    provider: str
    kind: CredentialKind = CredentialKind.API_KEY
    expires_ms: int | None = None
    usable: bool = True
    inline: bool = False
    agent: str = ""


Profiles = Mapping[str, Sequence[str]] | Iterable[Profile]
