"""From OpenAI-like messages to those of the Anthropic wire format.

The differences that matter: system texts stand apart; a tool's result is a block in a user message,
and all results of one round must stand in one message; a tool call is a block with parsed
arguments. What is not recognised goes through as it is, so that native blocks can be used too.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from standby.hosts.providers.values import Prompt
from standby.hosts.providers.wire import BadRequest, mapping, text_of


def translate_messages(prompt: Prompt) -> tuple[str, list[dict[str, Any]]]:
    """The system text and the messages; raises BadRequest for roles and calls that make no sense."""
    system = [prompt.system] if prompt.system else []
    messages: list[dict[str, Any]] = []
    for message in prompt.messages:
        role = message.get("role")
        match role:
            case "system" | "developer":
                system.append(text_of(message.get("content")))
            case "user":
                messages.append({"role": "user", "content": _content(message.get("content"))})
            case "assistant":
                messages.append({"role": "assistant", "content": _said(message)})
            case "tool":
                _add_result(messages, message)
            case _:
                raise BadRequest(f"A message has the role {role!r}, which no wire format knows.")
    return "\n\n".join(text for text in system if text), messages


def translate_tool(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """An OpenAI function tool as a tool of this wire format; others go through."""
    function = mapping(tool.get("function"))
    if tool.get("type") != "function" or not function:
        return tool
    translated: dict[str, Any] = {"name": function.get("name")}
    if "description" in function:
        translated["description"] = function["description"]
    translated["input_schema"] = function.get("parameters") or {"type": "object"}
    return translated


def _content(content: object) -> Any:
    if not isinstance(content, list):
        return content
    return [_part(part) for part in content]


def _part(part: object) -> object:
    if mapping(part).get("type") != "image_url":
        return part
    url = str(mapping(mapping(part).get("image_url")).get("url") or "")
    if not url.startswith("data:"):
        return {"type": "image", "source": {"type": "url", "url": url}}
    kind, _, data = url.removeprefix("data:").partition(",")
    source = {"type": "base64", "media_type": kind.removesuffix(";base64"), "data": data}
    return {"type": "image", "source": source}


def _said(message: Mapping[str, Any]) -> Any:
    calls = message.get("tool_calls")
    if not calls:
        return _content(message.get("content"))
    content = _content(message.get("content"))
    blocks = list(content) if isinstance(content, list) else []
    if isinstance(content, str) and content:
        blocks.append({"type": "text", "text": content})
    return blocks + [_use(mapping(call)) for call in calls]


def _use(call: Mapping[str, Any]) -> dict[str, Any]:
    function = mapping(call.get("function"))
    try:
        arguments = msgspec.json.decode(function.get("arguments") or "{}")
    except (msgspec.DecodeError, TypeError):
        raise BadRequest("A tool call of the prompt has arguments that are not JSON.") from None
    name = function.get("name")
    return {"type": "tool_use", "id": call.get("id"), "name": name, "input": arguments}


def _add_result(messages: list[dict[str, Any]], message: Mapping[str, Any]) -> None:
    block = {
        "type": "tool_result",
        "tool_use_id": message.get("tool_call_id"),
        "content": _content(message.get("content")),
    }
    last = messages[-1] if messages else {}
    content = last.get("content")
    if last.get("role") == "user" and isinstance(content, list) and _is_result(content[:1]):
        content.append(block)
    else:
        messages.append({"role": "user", "content": [block]})


def _is_result(first: list[Any]) -> bool:
    return bool(first) and mapping(first[0]).get("type") == "tool_result"
