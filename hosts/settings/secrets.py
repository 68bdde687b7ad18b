"""Secrets do not belong in a settings file: it is shared, printed and put under version control (STORE-1)."""

import re
from typing import Any, Final

from standby.hosts.settings.lines import Path
from standby.hosts.settings.validators import Source

_SECRET_KEY: Final = re.compile(
    r"(?:apikeys?|tokens?|secrets?|secretkey|password|passwd|passphrase|authorization|accesskey|privatekey|cookie"
    r"|credentials?|bearer)$|^(?:key|access|refresh)$"
)
# Keys of the usual providers, JSON web tokens and bearer headers. A placeholder such as `sk-...` is not one.
_SECRET_VALUE: Final = re.compile(
    r"(?:^|[^A-Za-z0-9])(?:(?:sk|rk|pk|gsk|xai|hf|ghp|gho|ghs|glpat|nvapi|pplx|csk|tgp|fw|r8)[-_][A-Za-z0-9_-]{16,}"
    r"|github_pat_[A-Za-z0-9_]{16,}|AIza[A-Za-z0-9_-]{20,}|AKIA[A-Z0-9]{12,}|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+)"
    r"|\b(?i:bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}"
)
# Their names end like those of secrets, but they are counts.
_COUNTS: Final = frozenset({"contexttokens", "maxtokens"})


def secret_like(key: str) -> bool:
    """Whether a key is called like one that holds a secret."""
    plain = re.sub(r"[^a-z0-9]", "", key.lower())
    return plain not in _COUNTS and _SECRET_KEY.search(plain) is not None


def use_instead() -> str:
    """What to do with a secret."""
    return (
        "settings hold no secrets: name the environment variable that holds it with apiKeyEnv, "
        "or keep it with `standby auth add`"
    )


def refuse_secrets(source: Source, data: dict[str, Any]) -> None:
    """Refuse a file that holds a secret, before anything of it could be repeated in a message.

    Raises:
        BadPolicy: a value looks like a key or token, or a header is called like one that carries them.
    """
    _look(source, (), data)


def _look(source: Source, path: Path, value: Any) -> None:
    if isinstance(value, dict):
        for name, inner in value.items():
            if _SECRET_VALUE.search(name):
                raise source.error(path, f"the name of a key looks like a secret; {use_instead()}")
            if path[-1:] == ("headers",) and secret_like(name):
                raise source.error((*path, name), use_instead())
            _look(source, (*path, name), inner)
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            _look(source, (*path, at), inner)
    elif isinstance(value, str) and _SECRET_VALUE.search(value):
        raise source.error(path, f"this looks like a secret; {use_instead()}")
