"""Masking: provider replies quote keys, tokens and addresses; none of them may be kept.

What is masked: every secret that the host knows, and everything that looks like one: values behind
`Authorization`, `Bearer` or `api key:`, tokens with a well-known prefix, JSON web tokens, email addresses, and
long opaque runs of letters and digits. Masking too much costs a few letters of a preview; too little leaks.
"""

import re
from collections.abc import Collection

__all__ = ["MASK", "mask"]

MASK = "[masked]"

_LOOKS_SECRET = re.compile(
    r"""
      (?:authorization|proxy-authorization|x-api-key|api[-_ ]?key(?:\ provided)?|access[-_]?token|refresh[-_]?token
        |client[-_]?secret|password|secret)["']?\s{0,3}[:=]\s{0,3}["']?(?:(?:bearer|basic)\s+)?(?P<named>[^\s"',;}]{4,400})
    | \b(?:bearer|basic)\s+(?P<bearer>[A-Za-z0-9._~+/=\-]{8,4000})
    | \b(?P<prefixed>(?:sk|pk|rk|gsk|xai|hf|ghp|gho|ghu|ghs|ghr|github_pat|glpat|nvapi|pplx|csk|fw|tgp_v1|r8|key
        |dapi|ya29|xox[abprs]|AKIA|ASIA|AIza|ctx7sk|cpk|jina|voyage|pa|sess|rt|at|ak)[-_.]?[A-Za-z0-9_\-*.]{8,400})
    | \b(?P<jwt>eyJ[A-Za-z0-9_\-]{6,4000}\.[A-Za-z0-9_\-.]{0,4000})
    | (?P<mail>[A-Za-z0-9._%+\-]{1,64}@[A-Za-z0-9\-]{1,63}(?:\.[A-Za-z0-9\-]{1,63}){1,5})
    | (?P<opaque>(?<![A-Za-z0-9])(?=[A-Za-z0-9+/]{0,200}\d)(?=[\d+/]{0,200}[A-Za-z])[A-Za-z0-9+/]{32,400}={0,2})
    """,
    re.VERBOSE | re.IGNORECASE,
)
_SHORT_PREFIX = re.compile(r"(?:key|pa|rt|at|ak|fw|hf|r8|pk|rk|sess|voyage|jina)[a-z]", re.IGNORECASE)


def _replace(match: re.Match[str]) -> str:
    whole = match[0]
    group = match.lastgroup or ""
    found = match[group] if group else whole
    if group == "prefixed" and not _is_tokenish(found):
        return whole
    return whole.replace(found, MASK)


def _is_tokenish(found: str) -> bool:
    """Words such as `key-limit-exceeded` and `patterned` begin like a token and are none."""
    if found[:2].lower() == "sk" and len(found) > 2 and found[2] in "-_":
        return True
    return not _SHORT_PREFIX.match(found) and any(c.isdigit() or c == "*" for c in found)


def mask(text: str, secrets: Collection[str] = ()) -> str:
    """`text` with everything secret or secret-looking replaced by `[masked]`.

    `secrets` are the values that the host knows (keys, tokens); those under four characters are passed over,
    since they would blank out ordinary words.
    """
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= 4 and secret in text:
            text = text.replace(secret, MASK)
    return _LOOKS_SECRET.sub(_replace, text)
