"""Masking: provider replies quote keys, tokens and addresses; none of them may be kept.

What is masked: every secret that the host knows, and everything that looks like one: what stands behind
`Authorization`, `Bearer`, `password` or `api key:`, tokens with a well-known prefix, JSON web tokens, email
addresses, and long opaque runs of letters and digits. Masking too much costs a few letters of a preview; too
little leaks.
"""

import re
from collections.abc import Collection

__all__ = ["MASK", "mask"]

MASK = "[masked]"

_RUN = re.compile(r"[A-Za-z0-9._~+/=\-*]{12,}")
_PREFIXES = (
    "sk-", "sk_", "pk-", "pk_", "rk_", "gsk_", "xai-", "hf_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_",
    "github_pat_", "glpat-", "nvapi-", "pplx-", "csk-", "fw_", "tgp_v1_", "r8_", "dapi", "ya29.", "xoxb-",
    "xoxa-", "xoxp-", "xoxr-", "xoxs-", "AKIA", "ASIA", "AIza", "jina_", "sess-", "eyJ", "1//0", "key-", "cpk_",
    "bce-v3/",
)  # fmt: skip
_AFTER_NAME = re.compile(
    r"((?:[ _\-]provided)?[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:bearer |basic )?|(?<=earer)\s{1,3}|(?<=asic)\s{1,3})"
    r"([A-Za-z0-9._~+/=\-*]{4,4000})",
    re.IGNORECASE,
)
_NAMES = ("authorization", "bearer", "basic", "password", "secret", "token", "key")
_HEADERS = frozenset({"authorization", "bearer", "basic", "password", "secret"})
_MAIL = re.compile(r"[A-Za-z0-9._%+\-]{1,64}@[A-Za-z0-9\-]{1,63}(?:\.[A-Za-z0-9\-]{1,63}){1,5}")
_SPLIT = re.compile(r"[./\-_~=]")
_SHORT_STARTS = ("sk-", "sk_", "pk-", "pk_", "xai-", "hf_", "ghp_")
_SHORT_KEY = re.compile(r"\b(?:g?sk|pk|xai|hf|ghp)[-_][A-Za-z0-9_\-*.]{3,400}")
_OPAQUE_LENGTH = 32


def _is_secret(run: str) -> bool:
    """Whether a long run of token characters is a key rather than a word, a path, a date or a model id."""
    if run.isalpha():
        return len(run) >= 64
    if run.startswith(_PREFIXES):
        return True
    if len(run) < _OPAQUE_LENGTH:
        return "***" in run
    for part in _SPLIT.split(run):
        if len(part) >= _OPAQUE_LENGTH and not part.isalpha() and not part.isdigit():
            return True
    return "***" in run


def _mask_run(match: re.Match[str]) -> str:
    return MASK if _is_secret(match[0]) else match[0]


def _is_named_secret(name: str, between: str, value: str) -> bool:
    """What stands behind a telling name; a plain word there ("token limit", "key: invalid") is none."""
    is_header = name in _HEADERS
    if value.isalpha() and (value.islower() or value.istitle()):
        return is_header and ":" in between
    return is_header or not value.replace(".", "").isdigit()


def _mask_named(text: str) -> str:
    lowered = text.lower()
    if len(lowered) != len(text):  # a few letters change their length with their case
        lowered = text
    spans: list[tuple[int, int]] = []
    for name in _NAMES:
        at = lowered.find(name)
        while at >= 0:
            match = _AFTER_NAME.match(text, at + len(name))
            if match is not None and _is_named_secret(name, match[1], match[2]):
                spans.append(match.span(2))
            at = lowered.find(name, at + len(name))
    rest = len(text)
    for start, end in sorted(spans, reverse=True):
        if end <= rest:
            text = text[:start] + MASK + text[end:]
            rest = start
    return text


def mask(text: str, secrets: Collection[str] = ()) -> str:
    """`text` with everything secret or secret-looking replaced by `[masked]`.

    `secrets` are the values that the host knows (keys, tokens); those under four characters are passed over,
    since they would blank out ordinary words.
    """
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= 4 and secret in text:
            text = text.replace(secret, MASK)
    if "@" in text:
        text = _MAIL.sub(MASK, text)
    text = _mask_named(text)
    if any(map(_is_secret, _RUN.findall(text))):
        text = _RUN.sub(_mask_run, text)
    if any(start in text for start in _SHORT_STARTS):
        text = _SHORT_KEY.sub(MASK, text)
    return text
