"""Bodies: the shapes in which providers wrap an error, taken apart into typed pieces.

OpenAI says `{"error": {message, type, param, code}}`, Anthropic puts a `type` beside it, Google adds `status`
and `details`, Vertex wraps that in an array, Bedrock uses `__type`, Azure nests `innererror`, OpenRouter hides
the upstream error as text in `metadata.raw`, MiniMax answers `base_resp`, FastAPI servers a `detail` list,
Cloudflare `errors`, others problem documents, HTML pages, events of a stream, or plain text with a status in
front. Instead of one parser for each, one walk collects what the *names* of the fields say, however deep they
lie. What fields mean nothing here is passed over, so that unrelated ones change nothing; what echoes the
request (`input`, `messages`) is never entered.

All work is bounded: bytes read, nodes visited, depth, texts kept, and every search goes through the text once.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from standby.engine.classify.normalise import normalise, squash
from standby.engine.reading.waits import WAIT_FIELDS

HEAD_BYTES = 49_152
TAIL_BYTES = 16_384
_TEXT_HEAD = 8_192
_TEXT_TAIL = 4_096
_MAX_NODES = 400
_MAX_DEPTH = 12
_MAX_TEXTS = 24
_MAX_EMBEDDED = 6


class Pieces:
    """What was found in one reply."""

    __slots__ = ("budget", "codes", "embedded", "fields", "headers", "html", "params", "statuses", "texts")

    def __init__(self) -> None:
        self.texts: list[tuple[int, str]] = []
        """(depth, text)"""
        self.codes: list[tuple[int, int, str]] = []
        """(depth, 0 for a code, 1 for a type, 2 for the name of a quota, value)"""
        self.params: list[tuple[int, str]] = []
        self.statuses: list[tuple[int, int]] = []
        self.fields: list[tuple[str, object]] = []
        """Fields that state a wait, by squashed name."""
        self.headers: dict[str, str] = {}
        """Headers of an upstream reply that the body quotes."""
        self.html = False
        self.budget = _MAX_NODES
        self.embedded = _MAX_EMBEDDED


_TEXT, _CODE, _TYPE, _PARAM, _STATUS, _ERROR, _REASON, _HEADERS, _SKIP, _QUOTA, _WAIT = range(11)
# What a Codex turn tells in `codexErrorInfo` and in the status inside it outlives its retries (CLS-30).
_ROLE_LINES = (
    (_TEXT, "message msg errormessage errormsg detail details description errordescription title"),
    (_TEXT, "statusmsg raw statusmessage localizedmessage failuremessage usermessage debugmessage"),
    (_TEXT, "errordetail errordetails errors body explanation cause retmsg respmsg failurereason"),
    (_CODE, "code errorcode errcode err subcode errorsubcode internalcode upstreamcode errno retcode"),
    (_CODE, "codexerrorinfo blockreason finishreason stopreason rejectcode bizcode"),
    (_TYPE, "type errortype exception exceptiontype errorname name"),
    (_QUOTA, "quotaid quotalimit"),
    (_PARAM, "param parameter target field"),
    (_STATUS, "status statuscode httpstatus httpcode httpstatuscode upstreamstatus"),
    (_ERROR, "error"),
    (_REASON, "reason"),
    (_HEADERS, "headers"),
    (_SKIP, "input inputs messages request requestbody prompt contents content tools toolcalls choices"),
    (_SKIP, "usage ctx contentfilterresult contentfilterresults example examples"),
)
_ROLES = {name: role for role, names in _ROLE_LINES for name in names.split()}
_ROLES |= dict.fromkeys(WAIT_FIELDS, _WAIT)
_FIELDS: dict[object, tuple[str, int | None]] = {}
_TOKEN = re.compile(r"[A-Za-z_][\w.\-/#:]{1,79}")
_NOISE = frozenset({"error", "none", "null", "", "ok", "failed", "about:blank", "object", "response.failed"})


def _name_and_role(key: object) -> tuple[str, int | None]:
    """A field's name without case and punctuation and what it holds, remembered for the first few hundred."""
    name = squash(key[:60]) if isinstance(key, str) else ""
    known = name, _ROLES.get(name)
    if len(_FIELDS) < 512 and isinstance(key, str) and len(key) <= 60:
        _FIELDS[key] = known
    return known


def _token(value: str) -> str:
    """The telling end of a namespaced type: `com.amazon.coral#ThrottlingException`, a problem's link."""
    if ":" not in value and "#" not in value:
        return value
    if "#" in value:
        value = value.rpartition("#")[2]
    elif "://" in value:
        value = value.rstrip("/").rpartition("/")[2]
    return value.partition(":")[0] if value[:40].count(":") and " " not in value else value


def _add_code(pieces: Pieces, depth: int, rank: int, value: object) -> None:
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int | float):
        number = int(value) if -1e9 < value < 1e9 else 0
        if 100 <= number <= 599 and rank == 0:
            pieces.statuses.append((depth, number))
        elif number:
            pieces.codes.append((depth, rank, str(number)))
    elif isinstance(value, str):
        text = value.strip()
        if text.isdigit() and len(text) < 7:
            _add_code(pieces, depth, rank, int(text))
        elif text and len(text) <= 120 and text.lower() not in _NOISE:
            if " " in text:
                pieces.texts.append((depth, text))
            pieces.codes.append((depth, rank, _token(text)))


def _add_status(pieces: Pieces, depth: int, value: object) -> None:
    if isinstance(value, str) and not value.strip().isdigit():
        _add_code(pieces, depth, 1, value)
    else:
        _add_code(pieces, depth, 0, value)


def _add_param(pieces: Pieces, depth: int, value: object) -> None:
    if isinstance(value, list):
        value = ".".join(str(v) for v in value[:8] if isinstance(v, str | int))
    if isinstance(value, str) and 0 < len(value) <= 120 and value.lower() not in ("none", "null"):
        pieces.params.append((depth, value))


def _add_text(pieces: Pieces, depth: int, value: str) -> None:
    if len(pieces.texts) >= _MAX_TEXTS or not value.strip():
        return
    opening = _opening(value)
    if opening is not None and pieces.embedded > 0 and depth < _MAX_DEPTH:
        pieces.embedded -= 1
        before, inner = value[:opening], _decode_from(value, opening)
        if inner is not None:
            if before.strip(" \t\r\n:-|"):
                pieces.texts.append((depth, before))
            _walk(pieces, inner, depth + 1)
            return
        if _scan(pieces, value[opening:], depth + 1):
            pieces.texts.append((depth, before))
            return
    pieces.texts.append((depth, value))


def _add_loc(pieces: Pieces, node: Mapping[str, Any], depth: int) -> None:
    """FastAPI's validation items name the field in `loc`."""
    if isinstance(node.get("loc"), list):
        _add_param(pieces, depth, node["loc"])


def _leaf(pieces: Pieces, role: int, value: object, depth: int) -> None:
    """What the value of a field with a known role adds, if it is no container."""
    if role == _TEXT:
        if isinstance(value, str):
            _add_text(pieces, depth, value)
    elif role in (_CODE, _TYPE):
        _add_code(pieces, depth, 0 if role == _CODE else 1, value)
    elif role == _QUOTA:
        _add_code(pieces, depth, 2, value)
    elif role == _PARAM:
        _add_param(pieces, depth, value)
    elif role == _STATUS:
        _add_status(pieces, depth, value)
    elif isinstance(value, str):  # "error" and "reason" hold either a token or a sentence
        if _TOKEN.fullmatch(value.strip()):
            _add_code(pieces, depth, 0 if role == _REASON else 1, value)
        _add_text(pieces, depth, value)


def _walk(pieces: Pieces, root: object, depth: int) -> None:
    """Collect the pieces of a decoded value, nearest first."""
    queue: list[tuple[int, object]] = [(depth, root)]
    for level, node in queue:  # grows while it is gone through
        if isinstance(node, dict):
            if "loc" in node:
                _add_loc(pieces, node, level)
            for key, value in node.items():
                pieces.budget -= 1
                if pieces.budget < 0:
                    return
                _field(pieces, queue, key, value, level)
        elif isinstance(node, list):
            pieces.budget -= 1
            if pieces.budget < 0:
                return
            for item in node[:40]:
                if isinstance(item, dict | list):
                    queue.append((level, item))
                elif isinstance(item, str):
                    _add_text(pieces, level, item)
        elif isinstance(node, str):
            _add_text(pieces, level, node)


def _field(pieces: Pieces, queue: list[tuple[int, object]], key: object, value: object, level: int) -> None:
    name, role = _FIELDS.get(key) or _name_and_role(key)
    if role == _WAIT:
        pieces.fields.append((name, value))
    elif role == _SKIP:
        return
    elif isinstance(value, dict):
        if role == _HEADERS:
            pieces.headers.update(_quoted_headers(value))
        elif level < _MAX_DEPTH:
            queue.append((level + 1, value))
    elif isinstance(value, list):
        if level < _MAX_DEPTH and not (role is None and value and isinstance(value[0], str)):
            queue.append((level + 1, value))
    elif role is not None:
        _leaf(pieces, role, value, level)


def _quoted_headers(value: Mapping[Any, Any]) -> dict[str, str]:
    return {
        str(name).lower(): str(content)
        for name, content in list(value.items())[:60]
        if isinstance(content, str | int | float)
    }


# --- text ---------------------------------------------------------------------------------------------------

_PAIR = re.compile(
    r"""["']([A-Za-z_@\-]{1,40})["']\s{0,3}:\s{0,3}"""
    r"""(?:"((?:[^"\\]|\\.){0,2000})"|'((?:[^'\\]|\\.){0,2000})'|(-?\d{1,15}(?:\.\d{1,9})?))""",
    re.DOTALL,
)
_OPENING = re.compile(r"""[{]\s{0,4}["']|\[\s{0,4}\{\s{0,4}["']""")
_DECODER = json.JSONDecoder()


def _opening(text: str) -> int | None:
    """Where a JSON object (or the repr of a dict) begins inside a text."""
    if "{" not in text:
        return None
    match = _OPENING.search(text)
    return None if match is None else match.start()


def _decode_from(text: str, start: int) -> object:
    try:
        return msgspec.json.decode(text[start:])
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        pass
    try:
        return _DECODER.raw_decode(text, start)[0]
    except (ValueError, RecursionError):
        return None


def _scan(pieces: Pieces, text: str, depth: int) -> bool:
    """Read the fields of something that is nearly JSON: cut short, or a Python repr."""
    found = False
    queue: list[tuple[int, object]] = []
    for number, match in enumerate(_PAIR.finditer(text)):
        if number >= 120:
            break
        key, double, single, digits = match.groups()
        value: object = double if double is not None else single
        if digits is not None:
            value = float(digits) if "." in digits else int(digits)
        elif isinstance(value, str) and "\\" in value:
            value = value.replace('\\"', '"').replace("\\n", " ").replace("\\'", "'")
        _field(pieces, queue, key, value, depth)
        found = True
    return found


def _stream_events(text: str) -> Iterator[object]:
    """Decoded payloads of server-sent events; those that tell of an error if there are any."""
    payloads: list[object] = []
    for line in text.split("\n")[:400]:
        if line.startswith("data:") and line[5:].lstrip().startswith(("{", "[")):
            payload = _decode_from(line, line.index("{") if "{" in line else 5)
            if payload is not None:
                payloads.append(payload)
    telling = [p for p in payloads if isinstance(p, dict) and _tells_of_error(p)]
    yield from telling or payloads[-3:]


def _tells_of_error(event: Mapping[str, Any]) -> bool:
    kind = event.get("type")
    notified = isinstance(kind, str) and kind.endswith(("error", "failed", "incomplete"))
    return notified or bool(event.get("error"))


def _between(text: str, opening: str, closing: str) -> str:
    """`text` without everything from each `opening` to its `closing`."""
    kept: list[str] = []
    at = 0
    while (start := text.find(opening, at)) >= 0:
        kept.append(text[at:start])
        end = text.find(closing, start)
        if end < 0:
            return " ".join(kept)
        at = end + len(closing)
    kept.append(text[at:])
    return " ".join(kept)


_TAG = re.compile(r"<[^<>]{0,600}>")


def _page_text(text: str) -> str:
    """The words of an HTML page."""
    lowered = text.lower()
    for name in ("script", "style"):
        if f"<{name}" in lowered:
            lowered = _between(lowered, f"<{name}", f"</{name}>")
    return _TAG.sub(" . ", lowered)


def _bounded(body: str, head: int, tail: int) -> str:
    return body if len(body) <= head + tail else body[:head] + "\n" + body[-tail:]


def bounded_text(text: str) -> str:
    """The two ends of a text that is longer than what phrases and waits are looked for in."""
    return text if len(text) <= _TEXT_HEAD + _TEXT_TAIL else _bounded(text, _TEXT_HEAD, _TEXT_TAIL)


def read_body(pieces: Pieces, body: object) -> None:
    """Add what a body says: text, or a JSON value that the host has parsed already."""
    if not isinstance(body, str):
        _walk(pieces, body, 0)
        return
    text = _bounded(body, HEAD_BYTES, TAIL_BYTES).strip()
    if not text or text in ("null", "None", "undefined"):
        return
    if text[0] in '{["' and len(body) <= HEAD_BYTES + TAIL_BYTES:
        try:
            decoded = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
            pass
        else:
            _walk(pieces, decoded, 0)
            return
    if text.startswith(("data:", "event:", ":")) or "\ndata:" in text:
        events = list(_stream_events(text))
        for event in events:
            _walk(pieces, event, 0)
        if events:
            return
    start = normalise(text[:600])
    if "<html" in start or "<!doctype" in start:
        pieces.html = True
        pieces.texts.append((0, _page_text(_bounded(text, _TEXT_HEAD, _TEXT_TAIL))))
        return
    if len(text) > _TEXT_HEAD + _TEXT_TAIL:
        _scan(pieces, text, 1)
        if not pieces.texts:
            pieces.texts.append((0, _bounded(text, _TEXT_HEAD, _TEXT_TAIL)))
        return
    _add_text(pieces, 0, text)
