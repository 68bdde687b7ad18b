"""A scenario file: policy, profiles, what calls come to, and what happens when.

TOML or JSON. Durations are milliseconds or text such as "90s", "5m", "1h30m". An unknown key is an error that
names its place.

    title = "An empty wallet"
    shows = ["BILL-2", "BILL-5"]              # rules that a decision of this scenario must name

    [policy.agents.defaults.model]            # [policy] holds the keys of a settings file
    primary = "openai/alpha"
    fallbacks = ["anthropic/beta"]

    [[profiles]]
    name = "openai:one"

    [[outcomes]]                              # tried in order; a call that none fits is answered
    model = "openai/alpha"
    kind = "no_credit"

    [[steps]]
    turn = { session = "s1" }
    expect = { answered = "anthropic/beta", notices = 1 }
"""

import json
import re
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from standby.events.errors import BadPolicy, BadScript
from standby.events.vocabulary import (
    CredentialKind,
    Effects,
    Failure,
    ResetKind,
    StopKind,
    TurnEnd,
)
from standby.hosts.scripted.replies import Dialect, Kind
from standby.hosts.settings import Settings, settings_within

__all__ = ["Expect", "Outcome", "Profile", "Scenario", "Step", "duration_ms", "load_scenario", "parse_scenario"]

Duration = int | str
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Profile(_Table, frozen=True, kw_only=True):
    """A credential; its provider is what stands before the colon, unless it is named."""

    name: str
    provider: str = ""
    kind: CredentialKind = CredentialKind.API_KEY
    expires: Duration | None = None
    """After the scenario's start."""
    usable: bool = True
    inline: bool = False
    agent: str = ""


class Outcome(_Table, frozen=True, kw_only=True):
    """What calls come to that fit `model`, `profile` and `turn` (what is left out fits all)."""

    model: str = ""
    profile: str = ""
    turn: str = ""
    since: Duration = 0
    until: Duration | None = None
    """From when and until when this holds, after the scenario's start."""
    times: int | None = None
    """How often; once, or always when `until` is given."""

    kind: Kind | None = None
    """A failure of the scripted provider, with the true body of the model's provider."""
    dialect: Dialect | None = None
    status: int | None = None
    headers: dict[str, str] = {}
    body: str | dict[str, Any] | None = None
    code: str = ""
    """A failure of the transport: ETIMEDOUT, ECONNREFUSED, ECONNRESET, CERT_INVALID."""
    retry_after: float | None = None

    took: Duration = 200
    """How long the call takes."""
    stream: bool = False
    """The failure comes after the response had begun."""
    effects: Effects = Effects.NONE
    delivered: bool = False
    repairable: bool = False
    format_repair: bool = False
    finished_work: bool = False
    selected_profile: bool = True
    provider_started: bool = True
    switch_to: str = ""
    """The call is left because the user switched the model."""
    stop: StopKind = StopKind.STOP
    fallback_worthy: bool = False
    writer_admitted: bool = True
    input_tokens: int = 100
    output_tokens: int = 20

    @property
    def fails(self) -> bool:
        """Whether the call fails."""
        return (self.kind not in (None, Kind.ANSWER)) or self.status is not None or bool(self.code)


class Expect(_Table, frozen=True, kw_only=True):
    """What a turn has to come to; what is left out is not looked at."""

    answered: str | None = None
    """The model that answers; "" when none may."""
    end: TurnEnd | None = None
    reason: Failure | None = None
    attempts: int | None = None
    models: list[str] | None = None
    """The models that are called, in order, each repetition included."""
    profiles: list[str] | None = None
    notices: int | None = None
    rules: list[str] = []
    """Rules that a decision of the turn names."""
    at: Duration | None = None
    """When the turn is over, after the scenario's start."""


class Step(_Table, frozen=True, kw_only=True):
    """One thing that happens. With `at` it happens at that moment, whatever is going on; without, once
    everything before it is over, and `after` later."""

    at: Duration | None = None
    after: Duration = 0
    runtime: str = "main"

    turn: dict[str, Any] | None = None
    """Fields of `Standby.start_turn`; `id` names the turn in the scenario."""
    expect: Expect | None = None
    select: dict[str, Any] | None = None
    """session, model, profile, agent; a model of "" is the choice "Default"."""
    pin: dict[str, Any] | None = None
    """session, provider, profile ("" takes the pin away)."""
    reset: dict[str, Any] | None = None
    """session, kind."""
    create: dict[str, Any] | None = None
    """session, parent, model, agent."""
    policy: dict[str, Any] | None = None
    """Adopt this policy; it has the keys of a settings file and takes the place of the whole policy."""
    profiles: list[Profile] | None = None
    order: dict[str, list[str]] | None = None
    remove: str = ""
    """Name of a profile whose credential is removed on purpose."""
    quota: dict[str, Any] | None = None
    """profile, exhausted, resets (a duration from now), valid."""
    compaction: dict[str, Any] | None = None
    """session, count."""
    cancel: str = ""
    """Id of a turn that the user stops."""
    deadline: str = ""
    no_progress: str = ""
    response: str = ""
    """Id of a turn inside whose attempt a model response is completed."""
    effects: str = ""
    """Id of a turn whose call is about to have an effect."""
    recovering: str = ""
    """Id of a turn whose runtime recovers by itself."""
    recorded: dict[str, Any] | None = None
    """turn, stored: the transcript stored a transition."""
    admitted: str = ""
    restart: bool = False
    """The runtime ends and starts again; turns under way end with it."""

    def kinds(self) -> list[str]:
        """Which things this step says; there has to be just one."""
        names = set(self.__struct_fields__) - {"at", "after", "runtime", "expect", "order"}
        return sorted(name for name in names if getattr(self, name) not in (None, "", False))


class Scenario(_Table, frozen=True, kw_only=True):
    """A scenario, read and checked."""

    title: str = ""
    about: str = ""
    shows: list[str] = []
    start_ms: int = 1_790_000_000_000
    seed: int = 1
    policy: dict[str, Any] = {}
    profiles: list[Profile] = []
    order: dict[str, list[str]] = {}
    outcomes: list[Outcome] = []
    steps: list[Step] = []


class _Loaded(msgspec.Struct):
    scenario: Scenario
    settings: Settings
    text: str
    name: str


def duration_ms(value: Duration) -> int:
    """Milliseconds of a duration.

    Raises:
        BadScript: it is none.
    """
    if isinstance(value, int):
        return value
    parts = _PART.findall(value.replace(" ", ""))
    if not parts or "".join(number + unit for number, unit in parts) != value.replace(" ", ""):
        raise BadScript(f'{value!r} is no duration; write milliseconds, or text such as "90s" or "1h30m"')
    return round(sum(float(number) * _UNITS[unit] for number, unit in parts))


def load_scenario(path: str | Path) -> _Loaded:
    """Read a scenario file.

    Raises:
        BadScript: it cannot be read, or something in it is wrong; the message names file and place.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadScript(f"{path}: cannot be read: {error}") from error
    return parse_scenario(text, str(path), as_json=str(path).endswith(".json"))


def parse_scenario(text: str, name: str = "<text>", *, as_json: bool = False) -> _Loaded:
    """Read a scenario from its text; see `load_scenario`."""
    try:
        data = json.loads(text) if as_json else tomllib.loads(text)
        # Prices are decimal fractions; as binary ones they would not be what the file says.
        exact = (json.loads if as_json else tomllib.loads)(text, parse_float=Decimal).get("policy", {})
    except ValueError as error:
        raise BadScript(f"{name}: this is not {'JSON' if as_json else 'TOML'}: {error}") from error
    try:
        scenario = msgspec.convert(data, Scenario)
    except msgspec.ValidationError as error:
        raise BadScript(f"{name}: {_plainly(error)}") from error
    _check(scenario, name)
    try:
        settings = settings_within(exact, name, "policy", "" if as_json else text)
    except BadPolicy as error:
        raise BadScript(str(error)) from error
    return _Loaded(scenario, settings, text, name)


def _plainly(error: Exception) -> str:
    return (
        str(error)
        .replace("Object contains unknown field", "unknown key")
        .replace("`$.", "`")
        .replace("$", "file")
    )


def _check(scenario: Scenario, name: str) -> None:
    ids: set[str] = set()
    for number, step in enumerate(scenario.steps):
        where = f"{name}: steps[{number}]"
        kinds = step.kinds()
        if len(kinds) != 1:
            said = ", ".join(kinds) or "nothing"
            raise BadScript(f"{where} says {said}; each step says one thing that happens")
        if step.expect is not None and step.turn is None:
            raise BadScript(f"{where}: only a turn has an expect")
        try:
            for value in (step.at, step.after):
                duration_ms(value or 0)
        except BadScript as error:
            raise BadScript(f"{where}: {error}") from error
        if step.turn is not None:
            if "session" not in step.turn:
                raise BadScript(f"{where}.turn: needs a session")
            ids.add(str(step.turn.get("id", f"turn-{len(ids) + 1}")))
    _check_references(scenario, name, ids)


def _check_references(scenario: Scenario, name: str, ids: set[str]) -> None:
    for number, step in enumerate(scenario.steps):
        for field in ("cancel", "deadline", "no_progress", "response", "effects", "recovering", "admitted"):
            key = getattr(step, field)
            if key and key not in ids:
                raise BadScript(
                    f"{name}: steps[{number}].{field}: there is no turn {key!r}; ids: {', '.join(sorted(ids))}"
                )
        resets = {kind.value for kind in ResetKind}
        if step.reset is not None and step.reset.get("kind", "reset") not in resets:
            raise BadScript(f"{name}: steps[{number}].reset.kind: say one of {', '.join(sorted(resets))}")
