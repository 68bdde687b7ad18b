"""Aliases: how names and texts are referred to in events without standing there.

An alias is a salted digest. The name or text and its random salt lie in the side table of the log, in the
same file and written in the same transaction. Who has both can check that the text is the one that the event
meant; once the row is erased, the alias says nothing any more, since the salt is gone with it.
"""

from hashlib import sha256
from typing import NamedTuple

SALT_BYTES = 16

KINDS = {"session": "s", "profile": "p", "text": "t", "owner": "o"}
"""Kinds of side-table entries and the letter that their aliases begin with."""


class SideEntry(NamedTuple):
    """One entry of the side table.

    `subject` is the alias whose erasure takes this entry along; a name is its own subject.
    """

    alias: str
    kind: str
    subject: str
    salt: bytes
    text: str

    def intact(self) -> bool:
        """Whether kind, text, salt and subject still give the alias; a name is its own subject."""
        if self.kind not in KINDS or not isinstance(self.salt, bytes) or not isinstance(self.text, str):
            return False
        if self.kind != "text":
            return self.subject == self.alias == alias_for(self.kind, self.salt, self.text)
        return alias_for(self.kind, self.salt, self.text, self.subject) == self.alias


def alias_for(kind: str, salt: bytes, text: str, subject: str = "") -> str:
    """The alias of a name or text: a letter for its kind and 96 bits of a salted digest.

    The digest of a text covers its subject too, so that a text cannot be moved out of an erasure's way.
    """
    said = "\0".join((kind, subject, text))
    digest = sha256(salt + said.encode("utf-8", "surrogatepass"))
    return f"{KINDS[kind]}-{digest.hexdigest()[:24]}"
