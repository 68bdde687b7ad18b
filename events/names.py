"""Aliases: how names and texts are referred to in events without standing there.

An alias is a salted digest. The name or text and its random salt lie in the side table of the log, in the
same file and written in the same transaction. Who has both can check that the text is the one that the event
meant; once the row is erased, the alias says nothing any more, since the salt is gone with it.
"""

from hashlib import sha256
from typing import NamedTuple

__all__ = ["KINDS", "SALT_BYTES", "Aside", "alias_for"]

SALT_BYTES = 16

KINDS = {"session": "s", "profile": "p", "text": "t", "owner": "o"}
"""Kinds of side-table entries and the letter that their aliases begin with."""


class Aside(NamedTuple):
    """One entry of the side table.

    `subject` is the alias whose erasure takes this entry along; a name is its own subject.
    """

    alias: str
    kind: str
    subject: str
    salt: bytes
    text: str

    def intact(self) -> bool:
        """Whether text and salt still give the alias."""
        return alias_for(self.kind, self.salt, self.text) == self.alias


def alias_for(kind: str, salt: bytes, text: str) -> str:
    """The alias of a name or text: a letter for its kind and 96 bits of a salted digest."""
    digest = sha256(salt + kind.encode() + b"\0" + text.encode("utf-8", "surrogatepass"))
    return f"{KINDS[kind]}-{digest.hexdigest()[:24]}"
