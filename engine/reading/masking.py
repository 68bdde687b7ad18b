"""Masking: provider replies quote keys, tokens and addresses; none of them may be kept.

What is masked: every secret that the host knows (`known`), and everything that looks like one: what stands
behind `Authorization`, `Bearer`, `password` or `api key:`, tokens with a well-known prefix, JSON web tokens,
email addresses, and long opaque runs of letters and digits. Masking too much costs a few letters of a preview;
too little leaks.
"""

import re
from collections.abc import Collection

from standby.engine.reading.known_secrets import MASK, KnownSecrets

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
_ESCAPED_ASCII = re.compile(r"\\{1,8}(?:u00([2-7][0-9a-fA-F])|/)")
_NEEDS_ESCAPE = frozenset('"\\\x7f')
_BEYOND = 512
"""How far the text is read past the length that is kept, since masking makes it shorter."""
_RUN_ON = re.compile(r"[A-Za-z0-9._~+/=\-*]{0,4000}")
_SPELT = 8
"""Characters of text that one character of a secret may take (`\\\\u002d`)."""


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


def _plain_character(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16)) if match[1] else "/"
    return match[0] if character in _NEEDS_ESCAPE else character


def mask(text: str, secrets: Collection[str] | KnownSecrets = ()) -> str:
    """`text` with everything secret or secret-looking replaced by `[masked]`.

    `secrets` are the values that the host knows (keys, tokens); those under four characters are passed over,
    since they would blank out ordinary words. JSON escapes of plain characters are written out, so that no key
    hides behind them.
    """
    if secrets:
        text = (secrets if isinstance(secrets, KnownSecrets) else KnownSecrets(secrets)).hide(text)
    if "\\" in text:
        text = _ESCAPED_ASCII.sub(_plain_character, text)
    if "@" in text:
        text = _MAIL.sub(MASK, text)
    text = _mask_named(text)
    if any(map(_is_secret, _RUN.findall(text))):
        text = _RUN.sub(_mask_run, text)
    if any(start in text for start in _SHORT_STARTS):
        text = _SHORT_KEY.sub(MASK, text)
    return text


def mask_head(text: str, length: int, secrets: KnownSecrets) -> tuple[str, int]:
    """What of a text is to be masked so that at least `length` characters can be kept of it, and how many
    characters at the end of the masked text must be dropped, since a secret may have been cut there.
    """
    end = length + _BEYOND
    if len(text) <= end:
        return text, 0
    reach = secrets.longest * _SPELT
    run = _RUN_ON.match(text, min(end + reach, len(text)))
    end = run.end() if run is not None else end + reach
    return text[:end], reach if end < len(text) else 0
