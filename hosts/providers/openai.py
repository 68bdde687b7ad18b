"""The OpenAI chat-completions wire format, as its owner and its many imitators speak it.

Where they differ, the looser reading wins for answers and the stricter one for failures: a missing
`[DONE]` after a finish reason is harmless, while an `error` object is a failure wherever it stands
(gateways send it under status 200 and inside streams).
"""

from collections.abc import Mapping
from typing import Any, Final

from standby.events.vocabulary import Origin, StopKind
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

# Anything else that a server may write here ("eos", "end_turn", …) means that it ended by itself.
_STOPS: Final[Mapping[str, StopKind]] = {
    "stop": StopKind.STOP,
    "tool_calls": StopKind.TOOL_CALLS,
    "function_call": StopKind.TOOL_CALLS,
    "length": StopKind.LENGTH,
    "max_tokens": StopKind.LENGTH,
    "model_length": StopKind.LENGTH,
}

# Finish reasons that are failures in the clothes of an ending; they are handed on by name.
_FAILING: Final = frozenset({"error", "abort", "network_error", "malformed_response", "content_filter"})


class OpenAiChat:
    """Builds requests of `POST {base_url}/chat/completions` and reads their replies."""

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
        messages = [dict(message) for message in prompt.messages]
        if prompt.system is not None:
            messages.insert(0, {"role": "system", "content": prompt.system})
        if not messages:
            raise BadRequest("The prompt holds no message.")
        body: dict[str, Any] = {"model": model, "messages": messages}
        if prompt.max_tokens is not None:
            body[endpoint.max_tokens_key] = prompt.max_tokens
        if prompt.temperature is not None:
            body["temperature"] = prompt.temperature
        if prompt.tools:
            body["tools"] = list(prompt.tools)
        if stream:
            body["stream"] = True
            if endpoint.stream_usage:
                body["stream_options"] = {"include_usage": True}
        headers = {
            "content-type": "application/json",
            "accept": "text/event-stream" if stream else "application/json",
        }
        if secret is not None:
            headers["authorization"] = "Bearer " + header_text("credential", secret.reveal())
        if attempt_id is not None:
            headers[ATTEMPT_HEADER] = header_text("attempt id", attempt_id)
        headers.update(endpoint.headers)
        return HttpRequest(
            method="POST",
            url=endpoint.base_url + "/chat/completions",
            headers=headers,
            content=encode(body | dict(prompt.extra)),
        )

    def parse(self, body: bytes) -> Answer | Broken:
        """Read the body of a reply that was not streamed."""
        reply = decode_object(body)
        if isinstance(reply, Broken):
            return reply
        raw = body.decode("utf-8", "replace")
        if reply.get("error"):
            return Broken(body=raw)
        choices = reply.get("choices")
        if not isinstance(choices, list):
            return Broken(body=raw, code=Code.MALFORMED, message="The reply holds no choices.")
        choice = mapping(choices[0]) if choices else {}
        if choice.get("error"):
            return Broken(body=raw)
        message = mapping(choice.get("message"))
        calls = message.get("tool_calls")
        return _answer(
            text=text_of(message.get("content")),
            calls=tuple(call for call in calls if isinstance(call, dict)) if isinstance(calls, list) else (),
            finish=str(choice.get("finish_reason") or ""),
            refusal=bool(message.get("refusal")),
            usage=_usage(reply.get("usage")),
            head=reply,
        )

    def reader(self) -> "OpenAiReader":
        """A reader for one stream."""
        return OpenAiReader()


class OpenAiReader:
    """Puts the chunks of one stream together; see `StreamReader`."""

    def __init__(self) -> None:
        self.finished = False
        self.broken: Broken | None = None
        self.usage: Usage | None = None
        self._text: list[str] = []
        self._calls: dict[int, dict[str, Any]] = {}
        self._finish = ""
        self._refusal = False
        self._head: Mapping[str, Any] = {}

    @property
    def complete(self) -> bool:
        """A finish reason came, and it was no failure."""
        return self.broken is None and self._finish != "" and self._finish not in _FAILING

    def feed(self, event: SseEvent) -> str:
        """Take one event; the text that it adds, "" if none."""
        if event.data.strip() == "[DONE]":
            self.finished = True
            return ""
        chunk = decode_object(event.data)
        if isinstance(chunk, Broken):
            return self._break(chunk)
        if chunk.get("error") or event.name == "error":
            return self._break(Broken(body=event.data))
        self.usage = _usage(chunk.get("usage")) or self.usage
        self._head = {**self._head, **{key: chunk[key] for key in ("id", "model") if key in chunk}}
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if mapping(choice).get("error"):
                return self._break(Broken(body=event.data))
            if count(mapping(choice).get("index")) == 0:
                return self._choice(mapping(choice))
        return ""

    def _choice(self, choice: Mapping[str, Any]) -> str:
        delta = mapping(choice.get("delta"))
        text = text_of(delta.get("content"))
        if text:
            self._text.append(text)
        self._refusal = self._refusal or bool(delta.get("refusal"))
        calls = delta.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            self._add_call(mapping(call))
        if choice.get("finish_reason"):
            self._finish = str(choice["finish_reason"])
        return text

    def _add_call(self, piece: Mapping[str, Any]) -> None:
        index = piece.get("index")
        place = index if isinstance(index, int) else len(self._calls)
        call = self._calls.setdefault(
            place, {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
        )
        call["id"] = call["id"] or str(piece.get("id") or "")
        function = mapping(piece.get("function"))
        call["function"]["name"] += str(function.get("name") or "")
        call["function"]["arguments"] += str(function.get("arguments") or "")

    def _break(self, broken: Broken) -> str:
        self.broken, self.finished = broken, True
        return ""

    def end(self) -> Answer | Broken:
        """The whole answer after the last event; Broken when it is not whole."""
        if self.broken is not None:
            return self.broken
        if not self._finish:
            return Broken(
                code=Code.STREAM_ENDED,
                origin=Origin.TRANSPORT,
                message="OpenAI chat stream ended before a terminal finish reason",
            )
        return _answer(
            text="".join(self._text),
            calls=tuple(self._calls[index] for index in sorted(self._calls)),
            finish=self._finish,
            refusal=self._refusal,
            usage=self.usage,
            head=self._head,
        )


def _answer(
    *,
    text: str,
    calls: tuple[Mapping[str, Any], ...],
    finish: str,
    refusal: bool,
    usage: Usage | None,
    head: Mapping[str, Any],
) -> Answer | Broken:
    if finish in _FAILING:
        return Broken(code=finish, message=f"Provider finish_reason: {finish}", text=text, usage=usage)
    if refusal and not text and not calls:
        return Broken(code="refusal", message="The model refused to answer.", usage=usage)
    stop = StopKind.TOOL_CALLS if calls else _STOPS.get(finish, StopKind.STOP)
    if finish and _STOPS.get(finish) is StopKind.LENGTH:
        stop = StopKind.LENGTH
    if not text and not calls and stop is not StopKind.LENGTH:
        return Broken(code=Code.EMPTY, message="The reply holds no text and no call.", usage=usage)
    return Answer(
        text=text,
        tool_calls=calls,
        stop=stop,
        usage=usage,
        model=str(head.get("model") or ""),
        response_id=str(head.get("id") or ""),
    )


def _usage(raw: object) -> Usage | None:
    if not isinstance(raw, dict):
        return None
    prompt = mapping(raw.get("prompt_tokens_details"))
    completion = mapping(raw.get("completion_tokens_details"))
    return Usage(
        input_tokens=count(raw.get("prompt_tokens")),
        output_tokens=count(raw.get("completion_tokens")),
        # DeepSeek names the cached part on the top level.
        cached_tokens=count(prompt.get("cached_tokens")) or count(raw.get("prompt_cache_hit_tokens")),
        reasoning_tokens=count(completion.get("reasoning_tokens")),
    )
