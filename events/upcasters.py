"""Upcasters: old shapes of commits are brought to the present one when they are read.

`UPCASTERS[n]` takes the plain JSON value of a commit of shape n and returns it in shape n + 1. Stored bytes
stay as they are, and the chain is checked on them before anything is upcast. Shape 1 is the first, so there
is nothing to upcast yet; the mechanism is held by tests with a made-up older shape.
"""

from collections.abc import Callable
from typing import Any

UPCASTERS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}


def upcast(plain: dict[str, Any], shape: int) -> dict[str, Any]:
    """Bring `plain` from `shape` to the newest shape, step by step."""
    while step := UPCASTERS.get(shape):
        plain = step(plain)
        shape += 1
    plain["shape"] = shape
    return plain
