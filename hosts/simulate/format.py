"""The decisions of a played scenario as lines for people: short, with times counted from the start.

Everything that is left out here stands in the log and in `--json`: of evidence the status, codes and first
words are shown, of a policy what has changed, of profiles their names.
"""

from typing import Any, Final

import msgspec

from standby.events import decisions as d
from standby.events import facts as f
from standby.events.policy import Policy
from standby.hosts.cli.labels import failure_text
from standby.hosts.cli.log import field_text
from standby.hosts.cli.output import MOMENTS
from standby.hosts.cli.reading import Names

_LEFT_OUT: Final = frozenset({
    "type", "turn", "rules", "index", "attempt", "evidence", "evidence_ms", "started_ms", "received_ms", "also",
    "counter", "table",
})  # fmt: skip
_SHOWN: Final = 60
"""Characters of one value of a policy."""


def offset(ms: int) -> str:
    """A moment, counted from the start: `+10m0.2s`."""
    minutes, rest = divmod(abs(ms), 60_000)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{rest / 1000:.3f}".rstrip("0").rstrip(".")
    whole = (f"{hours}h" if hours else "") + (f"{minutes}m" if minutes or hours else "")
    return f"{'-' if ms < 0 else '+'}{whole}{seconds}s"


class Words:
    """Words for the events of one log, in its order."""

    def __init__(self, names: Names, start_ms: int) -> None:
        self._names = names
        self._start_ms = start_ms
        self._policy = Policy()

    def of(self, event: Any) -> str:
        """What an event says, in one line."""
        match event:
            case f.PolicyAdopted():
                before, self._policy = self._policy, event.policy
                return self._changed(before, event.policy)
            case f.ProfilesObserved():
                return self._observed(event)
            case f.CallFailed():
                return failure_text(event, self._names)
            case f.CallSucceeded():
                return self._succeeded(event)
            case d.AttemptStarted():
                with_ = f" with {self._names.of(event.profile)}" if event.profile else ""
                return f"{event.attempt}: {event.model}{with_}{self._fields(event, 'model', 'profile')}"
            case d.ChainPlanned():
                chain = " -> ".join(one.model for one in event.candidates)
                first = event.candidates[0].model if event.candidates else ""
                besides = ("candidates", "selected") if event.selected == first else ("candidates",)
                return f"{chain}{self._fields(event, *besides)}"
            case d.ChainReordered():
                return " -> ".join(one.model for one in event.candidates)
            case d.ChainAdvanced():
                return f"{event.after} -> {event.model}{self._fields(event, 'after', 'model')}"
            case d.CandidateSkipped():
                return f"{event.model}{self._fields(event, 'model')}"
            case d.TurnAnswered():
                return f"by {event.model}{self._fields(event, 'model', 'profile')}"
            case _:
                return self._fields(event).strip()

    def _fields(self, event: Any, *besides: str) -> str:
        plain = self._names.replaced(msgspec.to_builtins(event))
        said = [
            f"{key.removesuffix('_ms')}={offset(one - self._start_ms)}"
            if key in MOMENTS and isinstance(one, int)
            else field_text(key, one.removeprefix("main/") if key == "session" else one)
            for key, one in plain.items()
            if key not in _LEFT_OUT and key not in besides
        ]
        return "".join(f" {one}" for one in said)

    def _changed(self, before: Policy, after: Policy) -> str:
        """The keys of a policy that are others than before."""
        old, new = (_flat(self._names.replaced(msgspec.to_builtins(one))) for one in (before, after))
        keys = [key for key in dict.fromkeys((*old, *new)) if key]
        changed = [f"{key}={_short(new.get(key, 'default'))}" for key in keys if old.get(key) != new.get(key)]
        return " ".join(changed) or "all defaults"

    def _observed(self, event: f.ProfilesObserved) -> str:
        words = []
        for profile in event.profiles:
            marks = [profile.kind.value] if profile.kind.value != "api_key" else []
            if profile.expires_ms is not None:
                marks.append(f"expires {offset(profile.expires_ms - self._start_ms)}")
            marks += [name for name, on in (("unusable", not profile.usable), ("inline", profile.inline)) if on]
            words.append(self._names.of(profile.alias) + (f" ({', '.join(marks)})" if marks else ""))
        order = [
            f"{provider}: {', '.join(map(self._names.of, names))}" for provider, names in event.order.items()
        ]
        return ", ".join(words) + (f"; order {'; '.join(order)}" if order else "")

    @staticmethod
    def _succeeded(event: f.CallSucceeded) -> str:
        marks = [event.stop.value] if event.stop.value != "stop" else []
        marks += [f"effects {event.effects.value}"] if event.effects.value != "none" else []
        if event.usage is not None:
            marks.append(f"{event.usage.input} tokens in, {event.usage.output} out")
        return f"{event.attempt}: {', '.join(marks)}" if marks else str(event.attempt)


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    if isinstance(value, dict) and value:
        found: dict[str, Any] = {}
        for key, one in value.items():
            found |= _flat(one, f"{path}.{key}" if path else str(key))
        return found
    return {path: value}


def _short(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return ",".join(value) or "[]"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
