"""Evidence: the one function that reads a raw reply and keeps what rules may look at (`extract`).

Order of work: bound the body, take it apart (`bodies`), find phrases (`rows`), waits (`timing`), the status;
keep all that as typed fields; only then mask and cut the text for people. So every decision can be recomputed
from `Evidence` alone, whether the text was kept, withheld or erased.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec

from standby.engine.classify.classifier import Reading, classify
from standby.engine.classify.normalise import normalise, squash
from standby.engine.classify.providers import EAST_ZONE, families_exact
from standby.engine.classify.tables import TABLE
from standby.engine.reading.bodies import Pieces, bounded_text, read_body
from standby.engine.reading.known_secrets import MASK, KnownSecrets
from standby.engine.reading.masking import mask, mask_head
from standby.engine.reading.phrase_lines import find_operator_literals, find_phrases
from standby.engine.reading.token_counts import token_count_of
from standby.engine.reading.waits import waits_of
from standby.engine.reading.word_index import WordIndex
from standby.events.evidence import Evidence, OperatorRow
from standby.events.vocabulary import Origin, Stage

_MAX_TOKENS = 16
_MAX_CODE = 100
_ARTICLE = 512
"""Prose longer than this is more likely an answer of a model than the words of an error."""
_READ_BYTES = 65_536


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A raw failure as a host saw it. It may hold secrets and is never stored."""

    provider: str = ""
    model: str = ""
    status: int | None = None
    """Numeric HTTP status of a status field; None if the host has none."""
    code: str | None = None
    """Code that the transport or SDK gave beside the body (`ECONNRESET`, `insufficient_quota`)."""
    error_type: str | None = None
    param: str | None = None
    headers: Mapping[str, str] = {}
    body: object = None
    """Text, bytes, or a JSON value that was parsed already."""
    message: str | None = None
    """Text of the exception, where it says something besides the body."""
    origin: Origin = Origin.PROVIDER
    stage: Stage = Stage.PROMPT
    received_ms: int = 0
    """When the reply came, in epoch ms; dates in it are turned into waits by this. 0: unknown."""

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """What may be printed: nothing of the body, the headers or the message, where keys are quoted."""
        hidden = ("headers", "body", "message")
        shown = [(name, getattr(self, name)) for name in self.__struct_fields__ if name not in hidden]
        return [(name, mask(value) if isinstance(value, str) else value) for name, value in shown]

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"Reply({shown})"


class Extracted(msgspec.Struct, frozen=True):
    """Typed evidence, and the masked text that goes to the side table."""

    evidence: Evidence
    text: str


_LEADING = re.compile(
    r"(?:error:?\s{0,3})?(?:http(?:/\d(?:\.\d)?)?\s{0,3}(?:error|status)?:?\s{0,3})?([1-5]\d\d)(?=$|[\s:,;\-<{\[(])"
)
_ENVELOPE = re.compile(
    r"(?:api error \(|error code:? ?|status(?:[ _]?code)?[ :=]{1,3}|\(?http(?: status| error)?[ :=]{1,2}"
    r"|<?response \[)"
    r"([1-5]\d\d)(?![\d.])"
)
_CLASS_NAME = re.compile(r"\b([a-z_]{3,60}(?:error|exception))(?=:|\s-|\s?\(|\]|$)")
_LEADING_TOKEN = re.compile(
    r"(?:error:?\s{0,2})?(?:[1-5]\d\d:?\s)?[\[\"']?([a-z][a-z0-9]{0,30}(?:[_.][a-z0-9]{1,30}){1,6}|[a-z]{5,50})"
    r"(?=:|[\]\"']|\s?$)"
)
_PLACEHOLDER = re.compile(
    r"[\[<(*{\"'_\s]{0,4}(?:(?:response|error|body|content|message|payload|details?)[\s_-]){0,3}"
    r"(?:redacted|masked|omitted|withheld|removed|hidden|scrubbed|sanitized|filtered|[*x█•]{3,40})"
    r"(?:[\s_:-](?:response|error|body|content|message|payload|details?|by|for|privacy|policy|security|reasons?)){0,4}"
    r"[\]>)*}\"'_\s.]{0,4}"
)
_CEILING = re.compile(r" limit (\d{1,12}) (?:(?:used|current) \d{1,12} )?request (\d{1,12}) ")
_MAY_BE_TOO_LARGE = frozenset({400, 404, 413, 422, 500})
_TYPE_HEADERS = frozenset({"x-amzn-errortype", "x-ms-error-code", "x-amz-error-code", "x-error-code"})


def _text_of(body: object) -> object:
    if isinstance(body, bytes | bytearray | memoryview):
        raw = bytes(body)
        if len(raw) > _READ_BYTES:
            raw = raw[: _READ_BYTES * 3 // 4] + b"\n" + raw[-_READ_BYTES // 4 :]
        return raw.decode("utf-8", "replace")
    return body


def _size(body: object) -> int:
    if body is None:
        return 0
    if isinstance(body, str):
        return len(body) if body.isascii() else len(body.encode("utf-8", "replace"))
    if isinstance(body, bytes | bytearray | memoryview):
        return len(bytes(body))
    try:
        return len(msgspec.json.encode(body))
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return 0


def _status_of(reply: Reply, pieces: Pieces, folded: Iterable[str]) -> tuple[int | None, str]:
    """The status and where it was read: "" for a status field, else the mark of its place (CLS-29)."""
    given = reply.status
    if given is not None and 400 <= given <= 599:
        return given, ""
    if pieces.statuses:
        errors = [pair for pair in pieces.statuses if pair[1] >= 400]
        if errors:
            return min(errors)[1], "status.body"
    for text in folded:
        start = text[:300]
        match = _LEADING.match(start.lstrip())
        if match is not None and int(match[1]) >= 400:
            return int(match[1]), "status.leading"
        match = _ENVELOPE.search(start)
        if match is not None and int(match[1]) >= 400:
            return int(match[1]), "status.envelope"
    return given, ""


def _clean_code(value: str, secrets: KnownSecrets) -> str:
    """A code fit to be kept: half characters cannot be stored; a name of plain words needs no masking."""
    value = value.strip()
    if not secrets and value.replace("_", "").replace(" ", "").isalpha():
        return value[:_MAX_CODE]
    if secrets.told_by(value):
        return MASK
    return _masked(value, _MAX_CODE, secrets)


def _masked(text: str, length: int, secrets: KnownSecrets) -> str:
    """At most `length` bytes of whole characters, cut only after masking: half a secret is none to `mask`."""
    head, dropped = mask_head(text, length, secrets)
    text = mask(head, secrets)
    text = text[: max(0, len(text) - dropped)]
    if len(text) <= length and text.isascii():
        return text
    return text.encode("utf-8", "replace")[:length].decode("utf-8", "ignore")


def _named(pieces: Pieces, rank: int) -> str:
    """The nearest code (rank 0) or type (rank 1) of the body; the same for any order of keys."""
    found = [(depth, value) for depth, which, value in pieces.codes if which == rank]
    return min(found)[1] if found else ""


def _tokens(
    pieces: Pieces,
    headers: Mapping[str, str],
    folded: Iterable[str],
    secrets: KnownSecrets,
    chosen: frozenset[str],
) -> tuple[str, ...]:
    """Codes and types besides `chosen`, squashed: of the body, of headers, and those that open a text."""
    found = [value for _, _, value in pieces.codes]
    if not _TYPE_HEADERS.isdisjoint(headers):
        found += [headers[name].partition(":")[0] for name in _TYPE_HEADERS if name in headers]
    for text in folded:
        start = text[:240].strip()
        if ":" in start[:80] or start.count(" ") < 3:
            match = _LEADING_TOKEN.match(start)
            if match is not None:
                found.append(match[1])
        if "error" in start or "exception" in start:
            found += _CLASS_NAME.findall(start)[:4]
    if chosen.issuperset(map(squash, found)):
        return ()
    # A key where a code should be must not come in by its squashed letters either.
    squashed = {squash(value) for value in found if _clean_code(value, secrets) == value.strip()[:_MAX_CODE]}
    tokens = sorted([token for token in squashed if 2 < len(token) <= _MAX_CODE])[:_MAX_TOKENS]
    return tuple([token for token in tokens if token not in chosen])


def _marks(pieces: Pieces, words: WordIndex, folded: list[str], place: str) -> list[str]:
    """Facts about the shape of a reply, kept among the hits."""
    marks = [place] if place else []
    if not (pieces.codes or pieces.texts or pieces.statuses or pieces.params):
        marks.append("shape.blank")
    if pieces.html:
        marks.append("shape.html")
    only = folded[0] if len(folded) == 1 else ""
    if len(only) > _ARTICLE and not pieces.codes:
        marks.append("shape.long-prose")
    if any(text.count("## ") > 1 for text in folded):
        marks.append("shape.headings")
    if 0 < len(only) <= 120 and _PLACEHOLDER.fullmatch(only.strip()):
        marks.append("shape.placeholder")
    if "limit" in words.unique and "request" in words.unique:
        for limit, request_tokens in _CEILING.findall(words.flat)[:4]:
            if int(request_tokens) > int(limit):
                marks.append("shape.asks-more-than-limit")
                break
    return marks


def extract(
    reply: Reply,
    *,
    limit_bytes: int = 2048,
    secrets: Collection[str] = (),
    extra_rows: tuple[OperatorRow, ...] = (),
) -> Extracted:
    """Typed evidence of a reply, and its masked text of at most `limit_bytes` bytes ("" when that is 0).

    Never raises on any reply. `evidence.text` is left empty: the host sets the digest once the text is kept.
    `extra_rows` are the operator's (OURS-6); their literals are looked for in the same whole bounded body.
    """
    pieces, known = Pieces(), KnownSecrets(secrets)
    body = _text_of(reply.body)
    if body is not None:
        read_body(pieces, body)
    if reply.message and reply.message != body:
        read_body(pieces, reply.message[:_READ_BYTES])
    headers = {name.lower(): str(value) for name, value in reply.headers.items()}
    if pieces.headers:
        headers = pieces.headers | headers
    pieces.texts.sort()
    folded = [normalise(bounded_text(text)) for text in dict.fromkeys([text for _, text in pieces.texts])]
    words = WordIndex(folded)
    status, place = _status_of(reply, pieces, folded)
    hits = (*_marks(pieces, words, folded, place), *find_phrases(words, status))
    if extra_rows:
        hits = (*find_operator_literals(extra_rows, folded), *hits)
    code = reply.code or _named(pieces, 0)
    error_type = reply.error_type or _named(pieces, 1)
    param = reply.param or (min(pieces.params)[1] if pieces.params else "")
    chosen = frozenset((squash(code), squash(error_type)))
    evidence = Evidence(
        provider=reply.provider,
        model=reply.model,
        status=status,
        code=_clean_code(code, known) if code else "",
        error_type=_clean_code(error_type, known) if error_type else "",
        param=_clean_code(param, known) if param else "",
        hits=hits,
        waits=waits_of(
            headers,
            pieces.fields,
            folded,
            words.unique,
            received_ms=reply.received_ms,
            hours_east=0 if EAST_ZONE.isdisjoint(families_exact(reply.provider)) else 8,
        ),
        origin=reply.origin,
        stage=reply.stage,
        table=TABLE,
        size=_size(reply.body if reply.body is not None else reply.message),
        soft=bool(place),
        request_tokens=token_count_of(folded) if status is None or status in _MAY_BE_TOO_LARGE else None,
        tokens=_tokens(pieces, headers, folded, known, chosen),
    )
    return Extracted(evidence, _kept_text(reply, body, limit_bytes, known))


def _kept_text(reply: Reply, body: object, limit_bytes: int, secrets: KnownSecrets) -> str:
    """The masked text for people, cut to whole characters."""
    if limit_bytes <= 0:
        return ""
    if body is None or body == "":
        body = reply.message or ""
    if not isinstance(body, str):
        try:
            body = msgspec.json.encode(body).decode()
        except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
            body = reply.message or ""
    return _masked(body, limit_bytes, secrets)


def read(reply: Reply, *, ruleset: str = "2026-10", extra_rows: tuple[OperatorRow, ...] = ()) -> Reading:
    """Extract and classify in one go, for callers that keep no evidence."""
    evidence = extract(reply, limit_bytes=0, extra_rows=extra_rows).evidence
    return classify(evidence, ruleset=ruleset, extra_rows=extra_rows)
