"""What each rule is about, in one line; the file is made from specs/rules.md (`make specs`)."""

from functools import cache
from importlib.resources import files

import msgspec


@cache
def rule_texts() -> dict[str, str]:
    """Rule id -> one line."""
    text = files("standby.hosts.cli").joinpath("rules.json").read_bytes()
    return msgspec.json.decode(text, type=dict[str, str])


def rule_text(rule: str) -> str:
    """The line of one rule; "" for an id that this version does not know."""
    return rule_texts().get(rule, "")
