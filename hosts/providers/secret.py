"""One secret, wrapped so that it cannot be printed by accident.

A key leaves this wrapper in one place only, where the header of a request is built. Everything that
prints, formats, compares or stores values sees the mask.
"""

import hashlib
import hmac
from typing import Final, NoReturn

from standby.engine.reading.known_secrets import KnownSecrets
from standby.events.vocabulary import CredentialKind

MASK: Final = "[secret]"

# Shorter "keys" are placeholders of local servers ("x", "none"): masking those would tear ordinary
# words.
_MASKABLE_CHARS: Final = 8


class Secret:
    """A key or token with its kind; `reveal()` is the only way to its text.

    It is neither picklable nor copyable into text: `repr`, `str` and formatting give a mask.
    """

    __slots__ = ("_known", "_value", "kind")

    def __init__(self, value: str, kind: CredentialKind = CredentialKind.API_KEY) -> None:
        self._value = value
        self._known: KnownSecrets | None = None
        self.kind = kind

    def reveal(self) -> str:
        """The secret itself, for the header that needs it and for nothing else."""
        return self._value

    def mask(self, text: str) -> str:
        """`text` without this secret, however it is spelt: some providers send the key back in their error."""
        if not text or len(self._value) < _MASKABLE_CHARS:
            return text
        if self._known is None:
            self._known = KnownSecrets((self._value,))
        return self._known.hide(text, MASK)

    @property
    def fingerprint(self) -> str:
        """See `fingerprint`."""
        return fingerprint(self._value)

    def __repr__(self) -> str:
        return f"Secret({MASK!r}, kind={self.kind.value})"

    def __str__(self) -> str:
        return MASK

    def __format__(self, spec: str) -> str:
        return format(MASK, spec)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        same = hmac.compare_digest(self._value.encode(), other._value.encode())
        return same and self.kind is other.kind

    def __hash__(self) -> int:
        return hash((self._value, self.kind))

    def __reduce__(self) -> NoReturn:
        raise TypeError("A Secret is not pickled: store the reference to it, not its text.")


def fingerprint(key: str) -> str:
    """A short digest by which two requests with the same key can be told; "" for no key."""
    return hashlib.sha256(key.encode()).hexdigest()[:10] if key else ""
