"""Moments that providers write out: ISO and HTTP dates, dates with the month's name, times of day.

A date with a month's name and a time of day count only where they say that they are UTC. "Dec 1st, 2026
3:08 PM" alone is meant in the zone of whoever reads it, which nothing in a reply tells; a place
("America/New_York") has to be looked up in a zone table, and those differ from machine to machine, so that one
reply would be read in two ways. Neither is read: no wait is better than one that is hours off.
"""

import re
from datetime import UTC, datetime, timedelta, timezone

_DAY_MS = 86_400_000
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_UTC = r"\s?\(?(?:utc|gmt)\)?(?![a-z+-])"

ISO_DATE = (
    r"\d{4}-\d\d-\d\d(?:[t ]| at )\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?"
    r"(?:\s?(?:z|utc|gmt|[+-]\d\d:?\d\d)(?![a-z]))?"
)
HTTP_DATE = r"(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6}, ?\d\d[ -][a-z]{3}[ -]\d{2,4} \d\d:\d\d:\d\d gmt"
CLOCK = rf"\d{{1,2}}(?::\d\d)?\s?(?:am|pm)?{_UTC}"
NAMED_DATE = (
    rf"(?:{'|'.join(_MONTHS)})[a-z]{{0,6}}\.? \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?(?:,| at|, at)? "
    rf"\d{{1,2}}(?::\d\d)?\s?(?:am|pm)?{_UTC}"
)
"""Patterns for folded text. The last one is for "Dec 1st, 2026 3:08 PM UTC" and "Dec 1 at 3pm (UTC)"."""

_CLOCK = re.compile(r"(\d{1,2})(?::(\d\d))?\s?(am|pm)?")
_NAMED = re.compile(r"([a-z]{3})[a-z.]* (\d{1,2})(?:st|nd|rd|th)?(?:,? (\d{4}))?(?:, at|,| at)? (\d.*)")


def date_ms(text: str, hours_east: int = 0) -> float | None:
    """Epoch ms of a date in ISO or HTTP form. A date without a zone is `hours_east` hours ahead of UTC."""
    text = text.strip()
    try:
        if text[:4].isdigit():
            plain = text.lower().replace(" at ", " ").replace("utc", "z").replace("gmt", "z").replace(" z", "z")
            timestamp = datetime.fromisoformat(plain.upper())
            if timestamp.tzinfo is None:
                timestamp = timestamp.replace(tzinfo=timezone(timedelta(hours=hours_east)))
        else:
            from email.utils import parsedate_to_datetime  # brings half the network library along

            timestamp = parsedate_to_datetime(text)
            if timestamp.tzinfo is None:
                timestamp = timestamp.replace(tzinfo=UTC)
        return timestamp.timestamp() * 1000
    except (ValueError, OverflowError, IndexError, TypeError):
        return None


def _time_of_day_ms(text: str) -> int | None:
    match = _CLOCK.match(text)
    if match is None:
        return None
    hour, minute = int(match[1]), int(match[2] or 0)
    if match[3]:
        hour = hour % 12 + (12 if match[3] == "pm" else 0)
    return hour * 3_600_000 + minute * 60_000


def clock_ms(text: str, received_ms: int) -> float | None:
    """Length in ms until the next time of day that is meant by "10pm (UTC)" or "00:00 UTC"."""
    time_ms = _time_of_day_ms(text)
    if time_ms is None or not received_ms:
        return None
    return float((time_ms - received_ms % _DAY_MS) % _DAY_MS)


def named_date_ms(text: str, received_ms: int) -> float | None:
    """Epoch ms of a `NAMED_DATE`. One without a year is the next such day, counted from `received_ms`."""
    match = _NAMED.match(text)
    time_ms = None if match is None else _time_of_day_ms(match[4])
    if match is None or time_ms is None or not received_ms:
        return None
    try:
        year = int(match[3] or datetime.fromtimestamp(received_ms / 1000, UTC).year)
        day = datetime(year, _MONTHS.index(match[1]) + 1, int(match[2]), tzinfo=UTC)
        timestamp = day.timestamp() * 1000 + time_ms
        if not match[3] and timestamp < received_ms - _DAY_MS:
            timestamp = day.replace(year=year + 1).timestamp() * 1000 + time_ms
    except (ValueError, OverflowError, OSError):
        return None
    return timestamp
