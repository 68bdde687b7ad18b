"""The Anthropic messages wire format: requests and replies.

Prompts have OpenAI roles, so they are translated on the way out (`anthropic_prompt`), and tool
calls are translated back on the way in, so that a conversation can move between providers and back.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from standby.events.vocabulary import CredentialKind, Origin, StopKind
from standby.hosts.providers.anthropic_prompt import translate_messages, translate_tool
from standby.hosts.providers.secret import Secret
from standby.hosts.providers.sse import SseEvent
from standby.hosts.providers.values import Answer, Code, Endpoint, HttpRequest, Prompt, Usage
from standby.hosts.providers.wire import (
    ATTEMPT_HEADER,
    BadRequest,
    Broken,
    count,
    decode_object,
    encode,
    header_text,
    mapping,
    text_of,
)

MAX_TOKENS: Final = 4096
"""The wire format demands a limit; this one is sent when the prompt names none."""

_VERSION: Final = "2023-06-01"
_OAUTH_BETA: Final = "oauth-2025-04-20"

_STOPS: Final[Mapping[str, StopKind]] = {
    "tool_use": StopKind.TOOL_CALLS,
    "max_tokens": StopKind.LENGTH,
    "model_context_window_exceeded": StopKind.LENGTH,
}


class AnthropicMessages:
    """Builds requests of `POST {base_url}/v1/messages` and reads their replies."""

    def build(
        self,
        endpoint: Endpoint,
        model: str,
        prompt: Prompt,
        secret: Secret | None,
        *,
        stream: bool,
        attempt_id: str | None,
    ) -> HttpRequest:
        """The request; raises BadRequest when it cannot be built."""
        system, messages = translate_messages(prompt)
        if not messages:
            raise BadRequest("The prompt holds no message of a user or assistant.")
        body: dict[str, Any] = {
            "model": model,
            "max_tokens": MAX_TOKENS if prompt.max_tokens is None else prompt.max_tokens,
            "messages": messages,
        }
        if system:
            body["system"] = system
        if prompt.temperature is not None:
            body["temperature"] = prompt.temperature
        if prompt.tools:
            body["tools"] = [translate_tool(tool) for tool in prompt.tools]
        if stream:
            body["stream"] = True
        headers = {
            "content-type": "application/json",
            "accept": "text/event-stream" if stream else "application/json",
            "anthropic-version": _VERSION,
        }
        headers.update(_authorization(secret))
        if attempt_id is not None:
            headers[ATTEMPT_HEADER] = header_text("attempt id", attempt_id)
        headers.update(endpoint.headers)
        base = endpoint.base_url.removesuffix("/v1")
        return HttpRequest(
            method="POST",
            url=base + "/v1/messages",
            headers=headers,
            content=encode(body | dict(prompt.extra)),
        )

    def parse(self, body: bytes) -> Answer | Broken:
        """Read the body of a reply that was not streamed."""
        reply = decode_object(body)
        if isinstance(reply, Broken):
            return reply
        raw = body.decode("utf-8", "replace")
        if reply.get("error") or reply.get("type") == "error":
            return Broken(body=raw)
        content = reply.get("content")
        if not isinstance(content, list):
            return Broken(body=raw, code=Code.MALFORMED, message="The reply holds no content.")
        blocks = [mapping(block) for block in content]
        calls = tuple(
            _call(block, _json_text(block.get("input"))) for block in blocks if block.get("type") == "tool_use"
        )
        return _answer(
            text=text_of(content),
            calls=calls,
            stop=str(reply.get("stop_reason") or ""),
            usage=_usage(reply.get("usage"), None),
            head=reply,
        )

    def reader(self) -> "AnthropicReader":
        """A reader for one stream."""
        return AnthropicReader()


class AnthropicReader:
    """Puts the events of one stream together; see `StreamReader`."""

    def __init__(self) -> None:
        self.finished = False
        self.broken: Broken | None = None
        self.usage: Usage | None = None
        self._head: Mapping[str, Any] = {}
        self._text: list[str] = []
        self._calls: dict[int, tuple[Mapping[str, Any], list[str]]] = {}
        self._stop = ""

    @property
    def complete(self) -> bool:
        """A stop reason came, and it was no refusal."""
        return self.broken is None and self._stop not in ("", "refusal")

    def feed(self, event: SseEvent) -> str:
        """Take one event; the text that it adds, "" if none."""
        item = decode_object(event.data)
        if isinstance(item, Broken):
            self.broken, self.finished = item, True
            return ""
        match item.get("type") or event.name:
            case "error":
                self.broken, self.finished = Broken(body=event.data), True
            case "message_start":
                self._head = mapping(item.get("message"))
                self.usage = _usage(self._head.get("usage"), self.usage)
            case "content_block_start":
                return self._start(item)
            case "content_block_delta":
                return self._delta(item)
            case "message_delta":
                self._stop = str(mapping(item.get("delta")).get("stop_reason") or self._stop)
                self.usage = _usage(item.get("usage"), self.usage)
            case "message_stop":
                self.finished = True
            case _:
                pass  # pings, and kinds that later versions add: the format says to pass them over
        return ""

    def _start(self, item: Mapping[str, Any]) -> str:
        block = mapping(item.get("content_block"))
        if block.get("type") == "tool_use":
            self._calls[count(item.get("index"))] = (block, [])
        return self._add(block.get("text") if block.get("type") == "text" else "")

    def _delta(self, item: Mapping[str, Any]) -> str:
        delta = mapping(item.get("delta"))
        if delta.get("type") == "text_delta":
            return self._add(delta.get("text"))
        call = self._calls.get(count(item.get("index")))
        if delta.get("type") == "input_json_delta" and call is not None:
            call[1].append(str(delta.get("partial_json") or ""))
        return ""

    def _add(self, text: object) -> str:
        if not isinstance(text, str) or not text:
            return ""
        self._text.append(text)
        return text

    def end(self) -> Answer | Broken:
        """The whole answer after the last event; Broken when it is not whole."""
        if self.broken is not None:
            return self.broken
        if not self._stop:
            return Broken(
                code=Code.STREAM_ENDED,
                origin=Origin.TRANSPORT,
                message="Anthropic stream ended before message_stop",
            )
        return _answer(
            text="".join(self._text),
            calls=tuple(
                _call(block, "".join(pieces) or _json_text(block.get("input")))
                for _, (block, pieces) in sorted(self._calls.items())
            ),
            stop=self._stop,
            usage=self.usage,
            head=self._head,
        )


def _authorization(secret: Secret | None) -> dict[str, str]:
    if secret is None:
        return {}
    text = header_text("credential", secret.reveal())
    match secret.kind:
        case CredentialKind.API_KEY:
            return {"x-api-key": text}
        case CredentialKind.OAUTH:
            return {"authorization": f"Bearer {text}", "anthropic-beta": _OAUTH_BETA}
        case CredentialKind.TOKEN:
            return {"authorization": f"Bearer {text}"}


def _call(block: Mapping[str, Any], arguments: str) -> dict[str, Any]:
    name = str(block.get("name") or "")
    return {
        "id": str(block.get("id") or ""),
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def _json_text(value: object) -> str:
    return msgspec.json.encode(mapping(value)).decode()


def _answer(
    *,
    text: str,
    calls: tuple[Mapping[str, Any], ...],
    stop: str,
    usage: Usage | None,
    head: Mapping[str, Any],
) -> Answer | Broken:
    if stop == "refusal":
        return Broken(code=stop, message="Provider stop_reason: refusal", text=text, usage=usage)
    kind = _STOPS.get(stop, StopKind.TOOL_CALLS if calls else StopKind.STOP)
    if not text and not calls and kind is not StopKind.LENGTH:
        return Broken(code=Code.EMPTY, message="The reply holds no text and no call.", usage=usage)
    return Answer(
        text=text,
        tool_calls=calls,
        stop=kind,
        usage=usage,
        model=str(head.get("model") or ""),
        response_id=str(head.get("id") or ""),
    )


def _usage(raw: object, before: Usage | None) -> Usage | None:
    """Counts of one event over those before it; a stream counts input first and output last."""
    if not isinstance(raw, dict):
        return before
    before = before or Usage()
    read = count(raw.get("cache_read_input_tokens"))
    written = count(raw.get("cache_creation_input_tokens"))
    # This wire format counts as input only what neither came from nor went into the cache.
    total = count(raw.get("input_tokens")) + read + written
    return Usage(
        input_tokens=max(total, before.input_tokens),
        output_tokens=count(raw.get("output_tokens")) or before.output_tokens,
        cached_tokens=max(read, before.cached_tokens),
        cache_write_tokens=max(written, before.cache_write_tokens),
    )
