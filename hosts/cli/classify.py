"""`standby classify`: read one failure given by flags, many from standard input, or list the tables.

    standby classify --status 429 --provider openai --body '{"error": {...}}'
    standby classify --jsonl < failures.jsonl
    standby classify --rows [--json]

A line of `--jsonl` input is an object with any of: id, ruleset, provider, model, status, code, error_type,
param, headers, body, message, origin, received_ms. One answer comes back for each line, in the same order, with
its `id` echoed. `reason` is null where nothing was recognised; `label` then says what to call it.
"""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from standby.engine.classify.classifier import Reading, classify, effective_wait, recognised
from standby.engine.classify.codes import TOKENS
from standby.engine.classify.tables import RULESETS, TABLE
from standby.engine.reading.extract import Reply, extract
from standby.engine.reading.phrase_lines import SAYS
from standby.events.errors import BadInput
from standby.events.evidence import Evidence, OperatorRow
from standby.events.vocabulary import Origin
from standby.hosts.cli.output import json_line, span

DEFAULT_RULESET = "2026-10"
_ROWS_BYTES_MOST = 1 << 20
_FIELDS = frozenset(
    {
        "id",
        "ruleset",
        "provider",
        "model",
        "status",
        "code",
        "error_type",
        "param",
        "headers",
        "body",
        "message",
    }
    | {"origin", "received_ms"}
)


def classify_command(
    jsonl: Annotated[
        bool, typer.Option("--jsonl", help="Read one JSON object a line, answer one a line.")
    ] = False,
    rows: Annotated[bool, typer.Option("--rows", help="List the tables instead.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Answer in JSON.")] = False,
    provider: Annotated[str, typer.Option(help="Provider that the call went to.")] = "",
    model: Annotated[str, typer.Option(help="Model that the call went to.")] = "",
    status: Annotated[int | None, typer.Option(help="HTTP status.", min=100, max=599)] = None,
    code: Annotated[str | None, typer.Option(help="Code beside the body, such as ECONNRESET.")] = None,
    header: Annotated[
        list[str] | None, typer.Option("--header", "-H", help="A header, 'name: value'; may be repeated.")
    ] = None,
    body: Annotated[str | None, typer.Option(help="Body or message; '-' reads standard input.")] = None,
    ruleset: Annotated[str, typer.Option(help="2026-10 or 2026-04.")] = DEFAULT_RULESET,
    extra: Annotated[
        Path | None, typer.Option("--extra-rows", help="JSON file with rows of your own, tried first.")
    ] = None,
) -> None:
    """Say what a provider failure means, which row said so, and how long the provider asked to wait."""
    try:
        own = _own_rows(extra)
        if rows:
            _list_rows(_known(ruleset), own, as_json=as_json)
        elif jsonl:
            _answer_lines(ruleset, own)
        else:
            given: dict[str, Any] = {
                "provider": provider, "model": model, "status": status, "code": code, "body": _body(body),
                "headers": _headers(header or []), "ruleset": ruleset,
            }  # fmt: skip
            if not (status or code or body or header):
                raise BadInput(
                    "nothing to classify: give --status, --code, --header or --body, pipe lines into --jsonl, "
                    "or ask for --rows"
                )
            _answer_one(given, own, as_json=as_json)
    except BadInput as error:
        typer.echo(f"standby classify: {error}", err=True)
        raise typer.Exit(2) from None


# --- input --------------------------------------------------------------------------------------------------


def _body(body: str | None) -> str | None:
    return sys.stdin.read() if body == "-" else body


def _headers(lines: list[str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise BadInput(f"header {line!r} is not of the form 'name: value'")
        headers[name.strip()] = value.strip()
    return headers


def _known(ruleset: str) -> str:
    if ruleset not in RULESETS:
        raise BadInput(f"ruleset {ruleset!r} is unknown; known are {', '.join(RULESETS)}")
    return ruleset


def _own_rows(path: Path | None) -> tuple[OperatorRow, ...]:
    if path is None:
        return ()
    try:
        with path.open("rb") as file:
            raw = file.read(_ROWS_BYTES_MOST + 1)
    except OSError as error:
        raise BadInput(f"the rows in {path} cannot be read: {error.strerror or error}") from None
    if len(raw) > _ROWS_BYTES_MOST:
        raise BadInput(f"{path}: this file is larger than {_ROWS_BYTES_MOST} bytes; is it the right one?")
    try:
        rows = msgspec.json.decode(raw, type=tuple[OperatorRow, ...])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"the rows in {path} cannot be used: {error}") from None
    classify(Evidence(), extra_rows=rows)  # checks them
    return rows


def _text(given: dict[str, Any], name: str) -> str | None:
    value = given.get(name)
    if value is None or isinstance(value, str):
        return value
    if name == "code" and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise BadInput(f"{name} must be text or null, not {type(value).__name__}")


def _reply(given: dict[str, Any], ruleset: str) -> tuple[Reply, str]:
    """The reply and the ruleset that one input object asks for."""
    unknown = sorted(set(given) - _FIELDS)
    if unknown and not (set(given) & _FIELDS):
        raise BadInput(f"no known field; {unknown[0]!r} is none of {', '.join(sorted(_FIELDS))}")
    status = given.get("status")
    if isinstance(status, str) and status.isdigit():
        status = int(status)
    if status is not None and (isinstance(status, bool) or not isinstance(status, int)):
        raise BadInput("status must be a whole number or null")
    headers = given.get("headers") or {}
    if not isinstance(headers, dict):
        raise BadInput("headers must be an object of names and values")
    received = given.get("received_ms")
    if received is not None and (isinstance(received, bool) or not isinstance(received, int)):
        raise BadInput("received_ms must be a whole number of epoch milliseconds")
    try:
        origin = Origin(given.get("origin") or Origin.PROVIDER)
    except ValueError:
        raise BadInput(f"origin must be one of {', '.join(Origin)}") from None
    flat = {str(name): _header_value(value) for name, value in headers.items() if value is not None}
    reply = Reply(
        provider=_text(given, "provider") or "",
        model=_text(given, "model") or "",
        status=status,
        code=_text(given, "code"),
        error_type=_text(given, "error_type"),
        param=_text(given, "param"),
        headers=flat,
        body=given.get("body"),
        message=_text(given, "message"),
        origin=origin,
        received_ms=received or 0,
    )
    return reply, _known(_text(given, "ruleset") or ruleset)


def _header_value(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(str(v) for v in value)
    return str(value)


def _lines() -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(sys.stdin.buffer, 1):
        if line.strip():
            yield number, line


# --- output -------------------------------------------------------------------------------------------------


def _answer(
    given: dict[str, Any], ruleset: str, own: tuple[OperatorRow, ...]
) -> tuple[dict[str, Any], Reading]:
    reply, ruleset = _reply(given, ruleset)
    evidence = extract(reply, limit_bytes=0, extra_rows=own).evidence
    if not reply.received_ms and effective_wait(evidence.waits) is None:
        evidence = _with_a_clock(reply, evidence, own)
    reading = classify(evidence, ruleset=ruleset, extra_rows=own)
    answer: dict[str, Any] = {"id": given["id"]} if "id" in given else {}
    answer |= {
        "reason": reading.reason.value if recognised(reading) else None,
        "label": reading.reason.value,
        "retry_after_ms": reading.retry_after_ms,
        "wait_source": reading.wait_source,
        "row": reading.row,
        "rules": reading.rules,
        "matched": reading.matched,
        "also_matched": reading.also_matched,
        "status": reading.status,
        "ruleset": ruleset,
        "table": reading.table,
    }
    if reading.reason == "refusal":
        answer["kind"] = reading.kind.value
    flags = (
        "long_window",
        "missing_model",
        "size_ceiling",
        "names_reasoning",
        "organisation_tpm",
        "subscription",
    )
    answer |= {name: True for name in (*flags, "aborted") if getattr(reading, name)}
    return answer, reading


def _with_a_clock(reply: Reply, evidence: Evidence, own: tuple[OperatorRow, ...]) -> Evidence:
    """Dates in a reply of unknown age are taken as of now; one that has passed belongs to an old record."""
    now_ms = time.time_ns() // 1_000_000
    dated = extract(msgspec.structs.replace(reply, received_ms=now_ms), limit_bytes=0, extra_rows=own).evidence
    wait = effective_wait(dated.waits)
    return dated if wait is not None and wait.ms > 0 else evidence


def _answer_lines(ruleset: str, own: tuple[OperatorRow, ...]) -> None:
    _known(ruleset)
    for number, line in _lines():
        try:
            given = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadInput(f"line {number} is not JSON: {error}") from None
        if not isinstance(given, dict):
            raise BadInput(f"line {number} must hold a JSON object, not {type(given).__name__}")
        try:
            answer, _ = _answer(given, ruleset, own)
        except BadInput as error:
            raise BadInput(f"line {number}: {error}") from None
        json_line(msgspec.json.encode(answer))
    sys.stdout.flush()


def _answer_one(given: dict[str, Any], own: tuple[OperatorRow, ...], *, as_json: bool) -> None:
    answer, reading = _answer(given, given["ruleset"], own)
    if as_json:
        json_line(msgspec.json.encode(answer))
        return
    typer.echo(f"reason        {answer['reason'] or 'none (' + answer['label'] + ')'}")
    typer.echo(f"row           {reading.row}  {', '.join(reading.matched)}".rstrip())
    if reading.rules:
        typer.echo(f"rules         {', '.join(reading.rules)}")
    for loser in reading.also_matched:
        typer.echo(f"also matched  {loser}")
    if reading.retry_after_ms is not None:
        typer.echo(f"wait          {span(reading.retry_after_ms)}, by {reading.wait_source}")
    marks = [name.replace("_", " ") for name, value in answer.items() if value is True]
    if marks:
        typer.echo(f"marks         {', '.join(marks)}")
    typer.echo(f"table         {reading.table}, ruleset {answer['ruleset']}")


def _list_rows(ruleset: str, own: tuple[OperatorRow, ...], *, as_json: bool) -> None:
    table = RULESETS[ruleset]
    if as_json:
        listing = {
            "table": TABLE, "ruleset": ruleset, "operator_rows": own, "rows": table.rows, "phrases": SAYS,
            "codes": {name: sorted(codes.split()) for name, codes in TOKENS.items()},
        }  # fmt: skip
        json_line(msgspec.json.encode(listing))
        return
    typer.echo(f"table {TABLE}, ruleset {ruleset}: rows in order, the first that matches wins")
    for one in own:
        typer.echo(f"{one.id:32} {one.reason.value:20} {'OURS-6':14} (yours)")
    for row in table.rows:
        asks = [f"status {_ranges(row.statuses)}"] if row.statuses else []
        asks += [f"provider {'/'.join(row.providers)}"] if row.providers else []
        asks += (
            [f"{len(row.tokens)} codes: {' '.join(row.tokens[:4])}{' …' * (len(row.tokens) > 4)}"]
            if row.tokens
            else []
        )
        asks += [f"said {' and '.join(row.says)}"] if row.says else []
        asks += [f"unless {' '.join(row.unless)}"] if row.unless else []
        reason, rules = row.reason.value if row.reason else "-", " ".join(row.rules) or "-"
        typer.echo(f"{row.id:32} {reason:20} {rules:14} {'; '.join(asks)}".rstrip())
    typer.echo(f"phrases ({len(SAYS)} lines)")
    for line in SAYS:
        seen = f"  [{line.seen}]" if line.seen else ""
        typer.echo(f"  {line.id:30} {' / '.join(line.patterns)}{seen}")


def _ranges(statuses: tuple[int, ...]) -> str:
    """Statuses for reading: runs are written as ranges."""
    parts: list[str] = []
    for status in sorted(statuses):
        first, _, last = parts[-1].partition("-") if parts else ("", "", "")
        if parts and int(last or first) == status - 1:
            parts[-1] = f"{first}-{status}"
        else:
            parts.append(str(status))
    return ",".join(parts)
