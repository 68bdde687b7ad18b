"""The one reader for every form in which a provider states a wait (TIME-1, OURS-4).

Sources, from the surest: `retry-after-ms` and `Retry-After` headers (seconds or an HTTP date), Google's
`RetryInfo.retryDelay`, fields of the body (`retry_after`, `resets_in_seconds`, `resets_at`), and the text
("Please try again in 6s", "Please retry in 32.8s", "reset after 18h31m10s", "in 58 hours", "access
on 2026-12-01 at 00:00 UTC"). Among these explicit ones the longest wins. Only when none of them says anything
does the reset of an *exhausted* bucket count (`x-ratelimit-reset-*`, `anthropic-ratelimit-*-reset` and their
likes); the reset of a bucket that still has something left says when it will be full again, which is no wait
at all (TIME-2, TIME-5).

Everything is turned into whole milliseconds from the moment at which the reply came, rounded up. What cannot
be a wait (negative, not a number, over 31 days, a header that is no time) is recorded with `ignored`.
"""

import math
import re
from collections.abc import Collection, Iterable, Mapping

from standby.engine.reading.timestamps import (
    CLOCK,
    HTTP_DATE,
    ISO_DATE,
    NAMED_DATE,
    clock_ms,
    date_ms,
    named_date_ms,
)
from standby.engine.reading.wait_names import kept_name
from standby.events.evidence import StatedWait
from standby.events.vocabulary import WaitSource

ABSURD_MS = 31 * 86_400_000
"""Waits beyond this are recorded and not obeyed (OURS-4)."""

# A member looked up on its enum costs a call each time; this module is on the way of every failure.
_RETRY_AFTER, _RETRY_AFTER_MS = WaitSource.RETRY_AFTER, WaitSource.RETRY_AFTER_MS
_RETRY_INFO, _BODY_FIELD, _TEXT = WaitSource.RETRY_INFO, WaitSource.BODY_FIELD, WaitSource.TEXT
_SUBSCRIPTION_RESET, _BUCKET_RESET = WaitSource.SUBSCRIPTION_RESET, WaitSource.BUCKET_RESET

_CLIP = 10**15
_UNIT_MS = {
    "ms": 1, "msec": 1, "millis": 1, "millisecond": 1, "毫秒": 1,
    "s": 1000, "sec": 1000, "second": 1000, "秒": 1000, "秒钟": 1000,
    "m": 60_000, "min": 60_000, "minute": 60_000, "分": 60_000, "分钟": 60_000,
    "h": 3_600_000, "hr": 3_600_000, "hour": 3_600_000, "小时": 3_600_000, "时": 3_600_000,
    "d": 86_400_000, "day": 86_400_000, "天": 86_400_000, "日": 86_400_000,
    "w": 604_800_000, "week": 604_800_000, "周": 604_800_000,
}  # fmt: skip
_NUMBER = r"\d{1,12}(?:\.\d{1,9})?"
_UNIT = (
    r"(?:milliseconds?|millis|msecs?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d|weeks?|w"
    r"|毫秒|秒钟|秒|分钟|分|小时|时|天|日|周)(?![a-z])"
)
_SPAN = rf"{_NUMBER}\s?{_UNIT}(?:(?:,|\s|and|und|y){{0,5}}{_NUMBER}\s?{_UNIT}){{0,5}}"
_TIGHT = r"(?:\d{1,6}(?:\.\d{1,9})?(?:ms|h|m|s|d|w)){1,6}(?![a-z0-9])"
_CLOCK_SPAN = r"(?:\d{1,3}\.)?\d\d:\d\d:\d\d(?![\d:])"
"""Days, hours, minutes and seconds as .NET writes them: `10.05:03:02`."""
_TOKENS = re.compile(rf"({_NUMBER})\s?({_UNIT})")
_WHOLE_SPAN = re.compile(rf"\s*(?:{_TIGHT}|{_SPAN})\s*")
_TIGHT_TOKENS = re.compile(r"(\d{1,6}(?:\.\d{1,9})?)(ms|h|m|s|d|w)")
_TIGHT_WHOLE = re.compile(_TIGHT)
_ISO_8601_SPAN = re.compile(
    r"p(?:(\d{1,5})d)?(?:t(?:(\d{1,5})h)?(?:(\d{1,6})m)?(?:(\d{1,9}(?:\.\d{1,9})?)s)?)?"
)
_TRIGGERS = {
    "retry": ("retry", "retrying"),
    "again": ("again",),
    "wait": ("wait",),
    "reset": ("reset",),
    "available": ("available",),
    "back": ("come back", "back off"),
    "backoff": ("backoff",),
    "cooldown": ("cooldown",),
    "cooling": ("cooling down",),
    "renew": ("renew",),
    "renews": ("renew",),
    "refill": ("refill",),
    "replenished": ("replenish",),
    "regain": ("regain access",),
    "waiting": ("wait",),
}
"""Word that must occur -> the texts that a stated wait may follow."""
_AFTER_TRIGGER = re.compile(
    r"(?:ing|s|ed)?(?:[\s:=_\"'*\-]{1,4}(?:request|again|after|in|for|within|at|on|about|approximately|around"
    r"|least|your|the|this|next|another|it|seconds|secs|ms|until|time|automatically|limit|down)){0,5}"
    r"[\s:=\"'*(~≈]{0,4}"
    rf"(?:(?P<iso>{ISO_DATE})|(?P<http>{HTTP_DATE})|(?P<named>{NAMED_DATE})"
    # After "at" this would be a time of day in nobody knows whose zone.
    rf"|(?<=in )(?P<clockspan>{_CLOCK_SPAN})|(?P<tight>{_TIGHT})|(?P<span>{_SPAN})"
    r"|(?P<one>(?:an?|one) (?P<unit>second|minute|hour|day|week))\b"
    rf"|(?P<clock>{CLOCK})"
    rf"|(?P<bare>-?{_NUMBER})(?=\s*(?:$|[.,;)\]\"'}}|\n])))"
)
_PLAIN = re.compile(
    r" (?:in|after) (\d{1,9}(?:\.\d{1,9})?) ?(ms|s|seconds?|m|minutes?|h|hours?)(?=[.;)\n]|$| (?!and |\d))"
)
"""The commonest form, tried before the whole grammar: "again in 6s", "retry after 9 seconds"."""
_CHINESE = re.compile(rf"(?P<span>{_SPAN})\s?(?:之?后|以后|后再|内)")
_CHINESE_DATE = re.compile(rf"(?:将在|将于|于|在)\s?(?P<iso>{ISO_DATE})\s?(?:重置|恢复|刷新|解除)")
_PIPE_EPOCH = re.compile(r"limit reached\|(\d{10})(?!\d)")
_MAX_TEXT_TRIES = 12


def _wait(source: WaitSource, ms: float, name: str = "") -> StatedWait:
    if 0 <= ms <= ABSURD_MS and ms == int(ms):
        return StatedWait(source, int(ms), name)
    if math.isnan(ms):
        return StatedWait(source, 0, name, True)
    clipped = max(-_CLIP, min(_CLIP, ms))
    whole = math.ceil(round(clipped, 6))
    return StatedWait(source, whole, name, whole < 0 or whole > ABSURD_MS)


def _unit_ms(unit: str) -> int:
    return _UNIT_MS.get(unit) or _UNIT_MS[unit.rstrip("s")]


def _span_ms(text: str) -> float:
    if _TIGHT_WHOLE.fullmatch(text):
        return sum(float(n) * _UNIT_MS[unit] for n, unit in _TIGHT_TOKENS.findall(text))
    return sum(float(number) * _unit_ms(unit) for number, unit in _TOKENS.findall(text))


def duration_ms(text: str, *, unit_ms: int = 1000) -> float | None:
    """Length of a written time span in ms ("6m0s", "1.5", "320ms", "PT90S"), or None if it is none.

    A bare number counts in units of `unit_ms`. The result may be negative or not finite; callers judge that.
    """
    text = text.strip().lower()
    try:
        return float(text) * unit_ms
    except ValueError:
        pass
    if _WHOLE_SPAN.fullmatch(text):
        return _span_ms(text)
    if len(text) > 1 and (match := _ISO_8601_SPAN.fullmatch(text)):
        d, h, m, s = (float(group or 0) for group in match.groups())
        return ((d * 24 + h) * 60 + m) * 60_000 + s * 1000
    return None


def _until(timestamp_ms: float | None, received_ms: int) -> float | None:
    """A moment as a wait; one that has passed is no wait, and without a clock there is none to be had."""
    if timestamp_ms is None or not received_ms:
        return None
    return max(0.0, timestamp_ms - received_ms)


def _epoch_ms(number: float) -> float | None:
    """A number that can only be a moment: epoch seconds or milliseconds of this century."""
    if 1e9 <= number < 1e11:
        return number * 1000
    return number if 1e12 <= number < 1e14 else None


# --- headers ----------------------------------------------------------------------------------------------


def _retry_after(value: str, name: str, received_ms: int) -> StatedWait | None:
    if value.isdecimal() and len(value) < 10:  # plain seconds, too few digits for a moment
        return _wait(_RETRY_AFTER, int(value) * 1000, name)
    span = duration_ms(value)
    if span is not None:
        timestamp = _epoch_ms(span / 1000)
        if timestamp is None:
            return _wait(_RETRY_AFTER, span, name)
        left = _until(timestamp, received_ms)
    else:
        timestamp = date_ms(value)
        if timestamp is None:
            return StatedWait(_RETRY_AFTER, 0, name, True)
        left = _until(timestamp, received_ms)
    return None if left is None else _wait(_RETRY_AFTER, left, name)


def _reset_ms(value: str, received_ms: int) -> float | None:
    """A bucket's reset in any of the forms in use: a span, seconds, epoch seconds or ms, a date."""
    span = duration_ms(value)
    if span is None:
        return _until(date_ms(value), received_ms)
    timestamp = _epoch_ms(span / 1000)
    return span if timestamp is None else _until(timestamp, received_ms)


def _is_exhausted(headers: Mapping[str, str], reset_name: str) -> bool:
    """Whether a reset's bucket is empty; else it tells of a full refill, which is no minimum wait (TIME-5)."""
    left = headers.get(reset_name.replace("reset", "remaining"))
    if left is None and reset_name == "x-ratelimit-reset":
        left = headers.get("x-ratelimit-remaining-requests")
    try:
        return left is not None and float(left) <= 0
    except ValueError:
        return False


def _window_wait(headers: Mapping[str, str], name: str, received_ms: int) -> StatedWait | None:
    """A usage window of an Anthropic subscription or a Codex plan that is used up, told by headers only."""
    if name.endswith("-reset-after-seconds"):
        used = duration_ms(headers.get(name[: -len("reset-after-seconds")] + "used-percent", "0"))
        left = duration_ms(headers[name]) if used is not None and used >= 100_000 else None
    elif name.endswith("reset") and headers.get(name[: -len("reset")] + "status", "").lower() == "rejected":
        left = _reset_ms(headers[name], received_ms)
    else:
        left = None
    return None if left is None else _wait(_SUBSCRIPTION_RESET, left, kept_name(name))


def _header_waits(headers: Mapping[str, str], received_ms: int) -> tuple[list[StatedWait], list[StatedWait]]:
    """Waits by headers (TIME-1), and apart from them the usage windows, which a field of the body outranks."""
    found: list[StatedWait] = []
    windows: list[StatedWait] = []
    for name, value in headers.items():
        if ("retry" not in name and "reset" not in name) or not name.isascii():
            continue
        if name in ("retry-after-ms", "x-ms-retry-after-ms", "x-retry-after-ms"):
            ms = duration_ms(value, unit_ms=1)
            wait = None if ms is None else _wait(_RETRY_AFTER_MS, ms, name)
            found.append(wait or StatedWait(_RETRY_AFTER_MS, 0, name, True))
        elif name in ("retry-after", "x-retry-after"):
            stated = _retry_after(value, name, received_ms)
            if stated is not None:
                found.append(stated)
        elif "reset" not in name:
            continue
        elif name.startswith(("anthropic-ratelimit-unified", "x-codex-")):
            window = _window_wait(headers, name, received_ms)
            if window is not None:
                windows.append(window)
        elif "ratelimit" in name and _is_exhausted(headers, name):
            left = _reset_ms(value, received_ms)
            if left is not None:
                found.append(_wait(_BUCKET_RESET, left, kept_name(name)))
    return found, windows


# --- fields of the body -----------------------------------------------------------------------------------

_RELATIVE = {
    "retryafter": 1000, "retryafterseconds": 1000, "retryaftersec": 1000, "retryafterms": 1, "retryin": 1000,
    "retryinseconds": 1000, "retryinms": 1, "retrydelay": 1000, "retrydelayms": 1, "retrydelayseconds": 1000,
    "resetsinseconds": 1000, "resetinseconds": 1000, "resetafterseconds": 1000, "resetafter": 1000,
    "resetsin": 1000, "resetin": 1000, "resetsinms": 1, "quotaresetdelay": 1000, "waitseconds": 1000,
    "waittime": 1000, "waitms": 1, "backoffseconds": 1000, "cooldownseconds": 1000, "cooldownms": 1,
    "secondsuntilreset": 1000, "estimatedtime": 1000,
}  # fmt: skip
_ABSOLUTE = frozenset({
    "resetsat", "resetat", "resettime", "quotaresettimestamp", "retryat", "nextresettime", "nextresetat",
    "nextretryat", "ratelimitreset", "limitresetat", "resettimestamp", "availableat",
})  # fmt: skip
WAIT_FIELDS = frozenset(_RELATIVE) | _ABSOLUTE
"""Names of body fields that state a wait, squashed."""


def _field_source(name: str) -> WaitSource:
    if name == "retrydelay":
        return _RETRY_INFO
    return _SUBSCRIPTION_RESET if "reset" in name else _BODY_FIELD


def _field_wait(name: str, value: object, received_ms: int, hours_east: int) -> StatedWait | None:
    source = _field_source(name)
    ms: float | None = None
    if isinstance(value, dict):  # a protobuf Duration: {"seconds": 32, "nanos": 500000000}
        seconds, nanos = value.get("seconds", 0), value.get("nanos", 0)
        if isinstance(seconds, int | float | str) and isinstance(nanos, int | float):
            seconds_ms = duration_ms(str(seconds))
            ms = None if seconds_ms is None else seconds_ms + nanos / 1e6
    elif isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    elif name in _RELATIVE:
        ms = duration_ms(str(value)[:60], unit_ms=_RELATIVE[name])
    else:
        number = duration_ms(str(value)[:60])
        timestamp = date_ms(str(value)[:60], hours_east) if number is None else _epoch_ms(number / 1000)
        ms = _until(timestamp, received_ms)
        if timestamp is not None and ms is None:
            return None
    if ms is None:
        return StatedWait(source, 0, name, True)
    return _wait(source, ms, name)


# --- text -------------------------------------------------------------------------------------------------


def _matched_ms(match: re.Match[str], received_ms: int, hours_east: int) -> float | None:
    kind = match.lastgroup or ""
    value = match[kind]
    if kind in ("iso", "http"):
        return _until(date_ms(value, hours_east), received_ms)
    if kind == "named":
        return _until(named_date_ms(value, received_ms), received_ms)
    if kind in ("tight", "span"):
        return _span_ms(value)
    if kind == "clockspan":
        days, _, clock = value.rpartition(".")
        h, m, sec = map(int, clock.split(":"))
        return float((((int(days or 0) * 24 + h) * 60 + m) * 60 + sec) * 1000)
    if kind == "one":
        return float(_UNIT_MS[match["unit"]])
    if kind == "clock":
        return clock_ms(value, received_ms)
    number = float(value)
    timestamp = _epoch_ms(number)
    if timestamp is not None:
        return _until(timestamp, received_ms)
    return number * (1 if "ms" in match[0].split("=")[0][:14] else 1000)


def _text_waits(text: str, triggers: Iterable[str], received_ms: int, hours_east: int) -> list[StatedWait]:
    found: list[StatedWait] = []
    matches: list[re.Match[str]] = []
    for trigger in triggers:
        at = text.find(trigger)
        for _ in range(_MAX_TEXT_TRIES):
            if at < 0:
                break
            end = at + len(trigger)
            plain = _PLAIN.match(text, end)
            match = None if plain else _AFTER_TRIGGER.match(text, end)
            if plain:
                found.append(_wait(_TEXT, float(plain[1]) * _unit_ms(plain[2])))
            elif match:
                matches.append(match)
            at = text.find(trigger, at + len(trigger))
    if not text.isascii():
        matches += [m for p in (_CHINESE, _CHINESE_DATE) if (m := p.search(text))]
    for match in matches:
        ms = _matched_ms(match, received_ms, hours_east)
        if ms is not None:
            found.append(_wait(_TEXT, ms))
    if "limit reached|" in text and (pipe := _PIPE_EPOCH.search(text)):
        left = _until(float(pipe[1]) * 1000, received_ms)
        if left is not None:
            found.append(_wait(_SUBSCRIPTION_RESET, left))
    return found


# --- together ---------------------------------------------------------------------------------------------


def waits_of(
    headers: Mapping[str, str],
    fields: Iterable[tuple[str, object]],
    texts: Iterable[str],
    words: Collection[str],
    *,
    received_ms: int = 0,
    hours_east: int = 0,
) -> tuple[StatedWait, ...]:
    """All waits that a reply states, each once, in the order headers, fields, text.

    `headers` have lower-case names, `fields` squashed names (`WAIT_FIELDS`); `texts` are folded, and `words`
    are the base words that occur in them. Dates count from `received_ms` (epoch ms; 0 for unknown, then from
    the reply's own `date` header, else not at all). `hours_east` is the zone of dates that name none.
    """
    found: list[StatedWait] = []
    windows: list[StatedWait] = []
    if headers:
        if not received_ms and "date" in headers:
            received_ms = int(date_ms(headers["date"]) or 0)
        found, windows = _header_waits(headers, received_ms)
    fields = list(fields)
    relative = bool(fields) and any(name in _RELATIVE for name, _ in fields)
    for name, value in fields:
        if relative and name in _ABSOLUTE:
            continue  # the same moment told twice; the span needs no clock
        stated = _field_wait(name, value, received_ms, hours_east)
        if stated is not None:
            found.append(stated)
    if windows and not any(w.source is _SUBSCRIPTION_RESET for w in found):
        found.extend(windows)
    triggers = [text for word, texts in _TRIGGERS.items() if word in words for text in texts]
    for text in texts:
        if triggers or "|" in text or not text.isascii():
            found.extend(_text_waits(text, triggers, received_ms, hours_east))
    if len(found) < 2:
        return tuple(found)
    return tuple([wait for number, wait in enumerate(found) if wait not in found[:number]])
