"""Waits inside a provider's SDK: how long it may sleep before the failure is surfaced (TIME-3, TIME-6).

SDKs of the Stainless family sleep through `Retry-After` before they tell anybody. A longer wait has to surface
at once, so that rotation and fallback can run in its place.
"""

import math
import re

SDK_CAP_MS = 60_000
"""The cap when nothing is set."""

_OFF = frozenset({"0", "false", "off", "none", "disabled"})
_DECIMAL = re.compile(r"\d{1,12}(?:\.\d{1,9})?")


def sdk_cap_ms(setting: str | None) -> int | None:
    """Cap in ms on the waits inside an SDK (TIME-3), None when switched off.

    `setting` is the text of `OPENCLAW_SDK_RETRY_MAX_WAIT_SECONDS` (TIME-6), read by the host: a positive
    decimal number of seconds, or 0, false, off, none, disabled; anything else leaves the default of 60 s.
    """
    text = (setting or "").strip().lower()
    if text in _OFF:
        return None
    if _DECIMAL.fullmatch(text) and float(text) > 0:
        return math.ceil(float(text) * 1000)
    return SDK_CAP_MS


def surfaces_at_once(status: int | None, wait_ms: int | None, cap_ms: int | None) -> bool:
    """Whether a retryable response must not be slept on inside the SDK, so that failover can run (TIME-3).

    Retryable are 408, 409, 429 and 5xx; the wait must be strictly longer than the cap. A 429 that states
    no wait is surfaced too, since the SDK would guess one.
    """
    if cap_ms is None or status is None or not (status in (408, 409, 429) or status >= 500):
        return False
    return status == 429 if wait_ms is None else wait_ms > cap_ms
