"""Words: how provider prose is made comparable before phrases are looked for in it.

Providers say one thing in many spellings: "Rate limit exceeded", "rate_limit_exceeded", "rate-limited",
"You’ve exceeded your rate limits". Phrases are therefore compared word by word, never letter by letter:

1. Unicode compatibility forms are folded (full-width letters and digits, ligatures), case is dropped, and
   typographic quotes and dashes become plain ones.
2. Punctuation separates words, so that `rate_limit`, `rate-limit` and `rate limit` are the same two words;
   apostrophes vanish (`can't` is `cant`).
3. The few words that matter for failures are reduced to one form each (`FORMS`): "exceeds", "exceeded" and
   "exceeding" are one word. Words that no phrase mentions stay as they are.

Parts of a reply (its messages, titles, details) stay apart: a line break stands between them that no phrase
crosses, so that their order cannot matter. Links are taken out, since their paths ("/rate-limits",
"/settings/billing") say where to read on and not what happened.
"""

import re

_FORM_LINES = """
exceed exceeds exceeded exceeding
reach reaches reached reaching
exhaust exhausts exhausted exhausting depleted deplete
limit limits limited limiting limitation
credit credits
token tokens
request requests requested
balance balances
fund funds
quota quotas
allow allows allowed
support supports supported
retire retires retired
deprecate deprecated deprecates
deactivate deactivated deactivates
disable disabled disables
suspend suspended suspends
revoke revoked revokes
delete deleted deletes
terminate terminated terminates
expire expired expires
throttle throttled throttles throttling
overload overloaded overloads overloading
model models
key keys
message messages
input inputs
prompt prompts
parameter parameters param params
argument arguments
permission permissions
credential credentials
scope scopes
minute minutes min
second seconds sec
hour hours
day days
week weeks
month months
connection connections
subscription subscriptions
plan plans
reset resets resetting
refresh refreshes refreshed refreshing
upgrade upgrades upgraded upgrading
purchase purchased purchases
reject rejected rejects
filter filtered filters filtering
flag flagged flags
block blocked blocks
violate violates violated violating violation violations
close closed closes
abort aborted aborts
end ended ends
fail failed fails failing failure failures
exist exists
authenticate authenticated authenticating
authorize authorized authorise authorised
organization organisation organizations organisations org
account accounts
project projects
concurrent concurrency
server servers
error errors
image images
tool tools
window windows
length lengths
word words
character characters chars
region regions
country countries
territory territories
deployment deployments
endpoint endpoints
provider providers
header headers
signature signatures
"""


def _forms() -> dict[str, str]:
    forms: dict[str, str] = {}
    for line in _FORM_LINES.split("\n"):
        first, *rest = line.split() or [""]
        forms.update(dict.fromkeys(rest, first))
    return forms


FORMS = _forms()
"""Other form of a word -> the form that phrases use."""

_SEPARATORS = bytes.maketrans(
    b"!\"#$%&()*+,-./:;<=>?@[\\]^_{|}~\t\r\n\v\f\x1c\x1d\x1e\x1f\0", b" " * 40
)  # fmt: skip
_DROPPED = b"'`"
_NOT_WORD = re.compile(r"[^\w]+|_+")
_LINK = re.compile(r"https?://[^\s\"'<>]{1,400}")


def words_of(folded: str) -> list[str]:
    """The words of an already folded text, in order, each in its base form."""
    if "://" in folded:
        folded = _LINK.sub(" ", folded)
    if folded.isascii():
        split = folded.encode().translate(_SEPARATORS, _DROPPED).decode().split()
    else:
        split = _NOT_WORD.sub(" ", folded.replace("'", "")).split()
    return list(map(FORMS.get, split, split))


class WordIndex:
    """The words of all parts of one reply, ready to be searched."""

    __slots__ = ("dense", "flat", "unique")

    def __init__(self, folded_parts: list[str]) -> None:
        lists = [words_of(part) for part in folded_parts]
        self.flat = "".join([" " + " ".join(words) + " \n" for words in lists if words])
        """One line a part, each word between single spaces."""
        self.unique = set(lists[0]) if len(lists) == 1 else set().union(*lists)
        self.dense = "" if self.flat.isascii() else self.flat.replace(" ", "")
        """The same without spaces, for scripts that write none; "" for plain ASCII."""
