"""How many tokens a request had, where the refusal of an oversized one says so (CHAIN-8).

Providers state the count beside the limit in a dozen wordings. What they share: the request's count is the
largest number of a sane size, and at least one smaller one, the limit, stands beside it. A text with the limit
alone says nothing of the request. The count is a hint and no more (CHAIN-10).
"""

import re
from collections.abc import Iterable

# A digit first and then what may not stand before it: so the search can leap from digit to digit.
_NUMBER = re.compile(r"\d(?<![\w.].)(?:\d{0,2}(?:,\d{3}){1,2}(?![\w,])|\d{2,7}(?!\w))")
_SUM = re.compile(r"(\d{1,8}) \+ (\d{1,8}) > (\d{1,8})")

SMALLEST, LARGEST = 600, 20_000_000
"""Numbers outside are statuses, ports and ids rather than counts of tokens or windows."""


def token_count_of(folded: Iterable[str]) -> int | None:
    """The token count that the texts of a refusal state for the request, or None.

    `folded` are texts in lower case.
    """
    for text in folded:
        if "token" not in text and "context" not in text and "length" not in text:
            continue
        if " + " in text and (added := _SUM.search(text)):
            one, other, limit = (int(part) for part in added.groups())
            if one + other > limit:
                return one + other
        found = {int(number.replace(",", "")) for number in _NUMBER.findall(text)}
        counts = [number for number in found if SMALLEST <= number <= LARGEST]
        if len(counts) > 1:
            return max(counts)
    return None
