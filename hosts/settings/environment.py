"""Environment variables that the documents name.

`plan` reads no environment: what a variable sets becomes part of the policy before the policy is adopted.
"""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from standby.hosts.settings.checks import skip_ttl
from standby.hosts.settings.values import Settings

SKIP_TTL_VARIABLE: Final = "OPENCLAW_FALLBACK_SKIP_TTL_MS"
_DIGITS: Final = re.compile(r"[0-9]+")
# Far above every bound, and short enough for `int`.
_DIGITS_MOST: Final = 12


def with_environment(settings: Settings, environ: Mapping[str, str]) -> Settings:
    """The settings with what the environment sets.

    `OPENCLAW_FALLBACK_SKIP_TTL_MS` beats `standby.skipTtlMs` (SKIP-1): a whole number of milliseconds, brought
    into 1 s to 10 min; 0 and everything that is no such number switch the skip cache off. Unset or empty, it
    leaves the file's setting alone.
    """
    text = environ.get(SKIP_TTL_VARIABLE, "").strip()
    if not text:
        return settings
    digits = text.lstrip("0")[:_DIGITS_MOST] if _DIGITS.fullmatch(text) else None
    warnings = settings.warnings
    if digits is None:
        warnings = (
            *warnings,
            f"the environment variable {SKIP_TTL_VARIABLE} is not a whole number of milliseconds: "
            "failed logins of fallbacks are not remembered (SKIP-1)",
        )
    ttl = skip_ttl(settings.policy, int(digits or 0))
    policy = msgspec.structs.replace(settings.policy, skip_ttl_ms=ttl)
    return msgspec.structs.replace(settings, policy=policy, warnings=warnings)
