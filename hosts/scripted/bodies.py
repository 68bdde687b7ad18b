"""Good answers in both wire formats, whole and as streams.

A stream is a list of pieces: bytes, and whether they carry a chunk of the answer (those are what a
script counts when it breaks a stream off).
"""

import re
import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from standby.hosts.providers.values import Wire
from standby.hosts.scripted.replies import Counts, Kind, Reply


class Piece(NamedTuple):
    """A part of a stream that is sent at once."""

    data: bytes
    carries: bool
    """It holds a chunk of text or of a tool call."""


_FINISH: Final[Mapping[tuple[Wire, str], str]] = {
    (Wire.OPENAI_CHAT, "stop"): "stop",
    (Wire.OPENAI_CHAT, "calls"): "tool_calls",
    (Wire.OPENAI_CHAT, "refused"): "content_filter",
    (Wire.ANTHROPIC_MESSAGES, "stop"): "end_turn",
    (Wire.ANTHROPIC_MESSAGES, "calls"): "tool_use",
    (Wire.ANTHROPIC_MESSAGES, "refused"): "refusal",
}


def whole(reply: Reply, wire: Wire, request: Mapping[str, Any], number: int) -> dict[str, Any]:
    """The body of an answer that is not streamed."""
    counts, model, finish = _counts(reply, request), _model(reply, request), _finish(reply, wire)
    if wire is Wire.OPENAI_CHAT:
        message: dict[str, Any] = {"role": "assistant", "content": reply.answer or None, "refusal": None}
        if reply.tool_calls:
            message["tool_calls"] = list(reply.tool_calls)
        return {
            "id": _id("chatcmpl-", number),
            "object": "chat.completion",
            "created": int(time.time()),
            "model": model,
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
            "usage": _openai_usage(counts),
            "system_fingerprint": "fp_scripted",
        }
    blocks: list[dict[str, Any]] = [{"type": "text", "text": reply.answer}] if reply.answer else []
    blocks += [_tool_use(call) | {"input": _arguments(call)} for call in reply.tool_calls]
    return {
        "id": _id("msg_", number),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": blocks,
        "stop_reason": finish,
        "stop_sequence": None,
        "usage": _anthropic_usage(counts),
    }


def stream(reply: Reply, wire: Wire, request: Mapping[str, Any], number: int) -> list[Piece]:
    """The pieces of a streamed answer, its terminal events included."""
    if wire is Wire.OPENAI_CHAT:
        return _openai_stream(reply, request, number)
    return _anthropic_stream(reply, request, number)


def error_event(wire: Wire, body: object) -> Piece:
    """A failure inside a stream, as that wire reports it."""
    name = "error" if wire is Wire.ANTHROPIC_MESSAGES else ""
    return Piece(_event(body, name), False)


def _openai_stream(reply: Reply, request: Mapping[str, Any], number: int) -> list[Piece]:
    head = {
        "id": _id("chatcmpl-", number),
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": _model(reply, request),
        "system_fingerprint": "fp_scripted",
    }

    def chunk(delta: Mapping[str, Any], finish: str | None = None) -> bytes:
        return _event(head | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    pieces = [Piece(chunk({"role": "assistant", "content": "", "refusal": None}), False)]
    pieces += [Piece(chunk({"content": text}), True) for text in _chunks(reply.answer)]
    for index, call in enumerate(reply.tool_calls):
        function = call.get("function", {})
        start = {"index": index, "id": call.get("id", ""), "type": "function"}
        opening = {"name": function.get("name", ""), "arguments": ""}
        pieces.append(Piece(chunk({"tool_calls": [start | {"function": opening}]}), False))
        for part in _chunks(function.get("arguments", "")):
            delta = {"tool_calls": [{"index": index, "function": {"arguments": part}}]}
            pieces.append(Piece(chunk(delta), True))
    pieces.append(Piece(chunk({}, _finish(reply, Wire.OPENAI_CHAT)), False))
    options = request.get("stream_options")
    if isinstance(options, dict) and options.get("include_usage"):
        usage = _openai_usage(_counts(reply, request))
        pieces.append(Piece(_event(head | {"choices": [], "usage": usage}), False))
    pieces.append(Piece(b"data: [DONE]\n\n", False))
    return pieces


def _anthropic_stream(reply: Reply, request: Mapping[str, Any], number: int) -> list[Piece]:
    counts = _counts(reply, request)
    message = whole(reply, Wire.ANTHROPIC_MESSAGES, request, number)
    message |= {"content": [], "stop_reason": None}
    message["usage"] = message["usage"] | {"output_tokens": 1}
    pieces = [_named("message_start", message=message), _named("ping")]
    blocks = [({"type": "text", "text": ""}, "text", reply.answer)] if reply.answer else []
    for call in reply.tool_calls:
        text = str(call.get("function", {}).get("arguments", ""))
        blocks.append((_tool_use(call) | {"input": {}}, "input_json", text))
    for index, (block, kind, text) in enumerate(blocks):
        pieces.append(_named("content_block_start", index=index, content_block=block))
        key = "text" if kind == "text" else "partial_json"
        for part in _chunks(text):
            delta = {"type": f"{kind}_delta", key: part}
            pieces.append(_named("content_block_delta", carries=True, index=index, delta=delta))
        pieces.append(_named("content_block_stop", index=index))
    finish = {"stop_reason": _finish(reply, Wire.ANTHROPIC_MESSAGES), "stop_sequence": None}
    pieces.append(_named("message_delta", delta=finish, usage={"output_tokens": counts.output}))
    pieces.append(_named("message_stop"))
    return pieces


def _named(event: str, *, carries: bool = False, **fields: Any) -> Piece:
    return Piece(_event({"type": event, **fields}, event), carries)


def _event(body: object, name: str = "") -> bytes:
    data = body.encode() if isinstance(body, str) else msgspec.json.encode(body)
    lines = b"".join(b"data: " + line + b"\n" for line in data.split(b"\n"))
    return (f"event: {name}\n".encode() if name else b"") + lines + b"\n"


def _chunks(text: str) -> list[str]:
    """Word by word, spaces kept with the word before them."""
    return re.findall(r"\s*\S+\s*?(?=\s|$)|\s+$", text)


def _model(reply: Reply, request: Mapping[str, Any]) -> str:
    return reply.model or str(request.get("model", ""))


def _finish(reply: Reply, wire: Wire) -> str:
    if reply.finish:
        return reply.finish
    if reply.kind is Kind.REFUSED:
        return _FINISH[wire, "refused"]
    return _FINISH[wire, "calls" if reply.tool_calls else "stop"]


def _id(prefix: str, number: int) -> str:
    return f"{prefix}scripted{number:08d}"


def _tool_use(call: Mapping[str, Any]) -> dict[str, Any]:
    name = call.get("function", {}).get("name", "")
    return {"type": "tool_use", "id": call.get("id", ""), "name": name}


def _arguments(call: Mapping[str, Any]) -> Any:
    return msgspec.json.decode(call.get("function", {}).get("arguments") or "{}")


def _counts(reply: Reply, request: Mapping[str, Any]) -> Counts:
    """As scripted, or estimated at four bytes a token, as the rule of thumb goes."""
    if reply.usage is not None:
        return reply.usage
    asked = msgspec.json.encode(request.get("messages", []))
    said = len(reply.answer) + sum(len(str(call)) for call in reply.tool_calls)
    return Counts(input=max(1, len(asked) // 4), output=max(1, said // 4))


def _openai_usage(counts: Counts) -> dict[str, Any]:
    return {
        "prompt_tokens": counts.input,
        "completion_tokens": counts.output,
        "total_tokens": counts.input + counts.output,
        "prompt_tokens_details": {"cached_tokens": counts.cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": counts.reasoning, "audio_tokens": 0},
    }


def _anthropic_usage(counts: Counts) -> dict[str, Any]:
    return {
        "input_tokens": max(0, counts.input - counts.cached),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": counts.cached,
        "output_tokens": counts.output,
        "service_tier": "standard",
    }
