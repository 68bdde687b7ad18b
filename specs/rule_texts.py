"""hosts/cli/rules.json: what each rule is about in one line, which the command line shows beside the rule's id.

The line is the beginning of the rule itself: whole sentences until something is said, cut where it gets long.
"""

import json
import re

from specs.catalogue import Catalogue

__all__ = ["LONGEST", "meaning_of", "meanings_page"]

LONGEST = 160
"""Most characters of a line."""
_ENOUGH = 50

# A sentence ends at a full stop before a new beginning; the stop inside `v2026.4.26` or "e.g." is none.
_END = re.compile(r"(?<!e\.g)(?<!i\.e)\.(?=\s+[A-Z`\"'(*↪0-9])")
_PAUSE = re.compile(r"[;:,.)]\s")


def meaning_of(text: str) -> str:
    """The beginning of a rule, as one line."""
    end = next((found.end() for found in _END.finditer(text) if found.end() >= _ENOUGH), len(text))
    if end <= LONGEST:
        return text[:end]
    pauses = [found.start() for found in _PAUSE.finditer(text, _ENOUGH, LONGEST)]
    cut = pauses[-1] if pauses else text.rfind(" ", 0, LONGEST)
    return text[:cut].rstrip() + " …"


def meanings_page(catalogue: Catalogue) -> str:
    """The whole file, one rule a line."""
    lines = [
        f"{json.dumps(rule.id)}: {json.dumps(meaning_of(rule.text), ensure_ascii=False)}"
        for rule in catalogue.rules.values()
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"
