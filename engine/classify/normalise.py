"""Comparable spellings of what providers write: texts without case, codes without case and punctuation."""

import re
import unicodedata
from functools import lru_cache

_QUOTES = str.maketrans({
    "‘": "'", "’": "'", "‚": "'", "‛": "'", "´": "'", "`": "'", "“": '"', "”": '"', "„": '"',
    "«": '"', "»": '"',
    "‐": "-", "‑": "-", "‒": "-", "–": "-", "—": "-", "−": "-",
    "\u200b": None, "\u200c": None, "\u200d": None, "\ufeff": None, "\u00ad": None,
})  # fmt: skip
_SQUASH = re.compile(r"[\W_]+")


def normalise(text: str) -> str:
    """Lower case, compatibility forms folded, plain quotes and dashes. Digits and punctuation stay."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", text).translate(_QUOTES).casefold()


@lru_cache(maxsize=4096)
def squash(token: str) -> str:
    """A code or type without case and punctuation: `RATE_LIMIT_EXCEEDED` and `RateLimitExceeded` are one."""
    return _SQUASH.sub("", normalise(token))
