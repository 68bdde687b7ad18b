"""Words for what happened that commands share: a failure in a line, and what a session keeps."""

from typing import Any, Final

import msgspec

from standby.events import facts as f
from standby.hosts.cli.output import local_time, span
from standby.hosts.cli.reading import Names

_SAID: Final = 60
"""Characters of a provider's words."""


def failure_text(event: f.CallFailed, names: Names) -> str:
    """A failed call in a line: attempt, status, codes, the first wait stated, effects, first words."""
    evidence = event.evidence
    marks = [f"HTTP {evidence.status}"] if evidence.status is not None else []
    marks += [code for code in (evidence.code, evidence.error_type) if code]
    marks += [f"wait {span(wait.ms)}" for wait in evidence.waits if not wait.ignored][:1]
    text = (names.get(evidence.text) or "") if evidence.text else ""
    said = _message(text)
    effects = [f"effects {event.effects.value}"] if event.effects.value != "none" else []
    effects += ["part delivered"] if event.delivered else []
    what = ", ".join((*marks, *effects)) or evidence.origin.value
    return f"{event.attempt}: {what}" + (f' "{said}"' if said else "")


def _message(text: str) -> str:
    """The sentence in a provider's reply, cut."""
    try:
        body = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        body = text
    for _ in range(4):
        if not isinstance(body, dict):
            break
        body = body.get("error") or body.get("message") or body.get("detail") or ""
    words = " ".join(body.split()) if isinstance(body, str) else ""
    return words if len(words) <= _SAID else words[: _SAID - 1] + "…"


def kept_text(step: dict[str, Any]) -> str:
    """What a step of a story changes in its session, as a sentence; "" for any other step."""
    session = str(step.get("session", "")).removeprefix("main/")
    match step["what"]:
        case "sticky_set":
            return (
                f"session {session} stays on {step['model']} until {local_time(step['until_ms'])}, "
                f"then {step['selected']} is tried again"
            )
        case "sticky_ended":
            return f"session {session} no longer stays on {step['model']}"
        case "pin_set":
            why = ", as the user wishes" if step.get("user") else ""
            why += ", moved there by a rate limit" if step.get("displaced") else ""
            return f"session {session} keeps to {step['profile']} for {step['provider']}{why}"
        case "pin_cleared":
            return f"session {session} no longer keeps to a profile of {step['provider']}"
        case "notice_due":
            if step.get("returned"):
                change = f"{step['selected']} answers again instead of {step['active']}"
            else:
                change = f"{step['active']} answered instead of {step['selected']}"
            why = f" because of {step['reason']}" if step.get("reason") else ""
            told = "is not told" if step.get("quiet") else "is told"
            return f"the user {told} that {change}{why}"
        case "skip_marked":
            return (
                f"session {session} passes over {step['model']} with {step['profile']} "
                f"until {local_time(step['until_ms'])} ({step.get('reason', 'auth')})"
            )
        case "block_cleared":
            scope = f" for {step['model']}" if step.get("model") else ""
            why = f" ({step['reason']})" if step.get("reason") else ""
            return f"{step['profile']} is open again{scope}{why}"
        case "selection_inherited":
            return f"session {session} takes over the selection of {step['model']} ({step['source']})"
        case "selection_cleared":
            return f"session {session} goes back to the configured model"
        case _:
            return ""
