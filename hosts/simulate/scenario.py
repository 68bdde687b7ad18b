"""A scenario file: policy, profiles, what calls come to, and what happens when.

TOML or JSON. Durations are milliseconds or text such as "90s", "5m", "1h30m". An unknown key is an error that
names its place. Steps are in the order of time, and each says one thing:

    after = "5m"     five minutes after everything before it is over; without any of the three, at once then
    during = "1s"    one second after the step before it happened, whatever is under way
    at = "10m"       ten minutes after the start, whatever is under way

    title = "An empty wallet"
    shows = ["BILL-2", "BILL-5"]              # rules that this scenario must show

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

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from standby.events.errors import BadScript
from standby.events.vocabulary import (
    CredentialKind,
    Effects,
    Failure,
    ResetKind,
    SelectionSource,
    StopKind,
    Surface,
    ToolReceipt,
    TurnEnd,
    TurnKind,
)
from standby.hosts.scripted.replies import Dialect, Kind
from standby.hosts.settings import Settings
from standby.hosts.settings.lines import Path


class Duration(int):
    """Milliseconds, never negative."""


_Count = Annotated[int, Meta(ge=0, le=1_000_000_000)]
_Seconds = Annotated[float, Meta(ge=0, le=40_000_000)]
_Status = Annotated[int, Meta(ge=100, le=599)]
_NOTHING = Duration(0)


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Profile(_Table, frozen=True, kw_only=True):
    """A credential; its provider is what stands before the colon, unless it is named."""

    name: str
    provider: str = ""
    kind: CredentialKind = CredentialKind.API_KEY
    expires: Duration | None = None
    """After the scenario's start; 0 has expired already."""
    usable: bool = True
    inline: bool = False
    agent: str = ""


class Outcome(_Table, frozen=True, kw_only=True):
    """What calls come to that fit `model`, `profile` and `turn` (what is left out fits all)."""

    model: str = ""
    profile: str = ""
    turn: str = ""
    since: Duration = _NOTHING
    until: Duration | None = None
    """From when and until when this holds, after the scenario's start; the start of a call counts."""
    times: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    """How often; once, or always when `until` is given."""

    kind: Kind | None = None
    """A failure of the scripted provider, with the true body of the model's provider."""
    dialect: Dialect | None = None
    status: _Status | None = None
    headers: dict[str, str] = {}
    body: str | dict[str, Any] | None = None
    code: str = ""
    """A failure of the transport: ETIMEDOUT, ECONNREFUSED, ECONNRESET, CERT_INVALID."""
    retry_after: _Seconds | None = None
    """Seconds that the provider asks for."""

    took: Duration = Duration(200)
    """How long the call takes; it is cut off where the attempt's time or the run's deadline is over."""
    stream: bool = False
    """The failure comes after the response had begun."""
    effects: Effects = Effects.NONE
    delivered: bool = False
    receipts: list[ToolReceipt] = []
    bare: bool = False
    repairable: bool = False
    format_repair: bool = False
    finished_work: bool = False
    selected_profile: bool = True
    provider_started: bool = True
    switch_to: str = ""
    """The call is left because the user switched the model."""
    served: str = ""
    """The model to which the provider went by itself inside the request (ADV-13)."""
    stop: StopKind = StopKind.STOP
    fallback_worthy: bool = False
    writer_admitted: bool = True
    input_tokens: _Count = 100
    output_tokens: _Count = 20

    @property
    def fails(self) -> bool:
        """Whether the call fails."""
        return (self.kind not in (None, Kind.ANSWER)) or self.status is not None or bool(self.code)


class Turn(_Table, frozen=True, kw_only=True):
    """A turn that is requested; the fields are those of `Standby.start_turn`."""

    session: str
    id: str = ""
    """Names the turn; turn-1, turn-2 and so on without it."""
    agent: str = "main"
    model: str = ""
    source: SelectionSource = SelectionSource.DEFAULT
    fallbacks: list[str] | None = None
    kind: TurnKind = TurnKind.INTERACTIVE
    surface: Surface = Surface.DIRECT
    locked: bool = False
    rerouted: bool = False
    image: bool = False
    timeout: Duration | None = None
    """Of each attempt."""
    deadline: Duration | None = None
    """Of the whole run, from its request."""
    allowance: Duration | None = None
    max_retries: _Count | None = None
    input_tokens: _Count | None = None
    continuable: bool = False
    owns_transport: bool = False
    answer_required: bool = True
    local_settings: bool = True
    selected_only: bool = False
    harness: str = ""
    hidden: bool = False
    continues: str = ""
    """Id of a failed turn."""
    repairs: bool = False
    """The host can repair requests (compact, trim, sanitise); without it an ordered repair fails."""


class Expect(_Table, frozen=True, kw_only=True):
    """What a turn has to come to; what is left out is not looked at."""

    answered: str | None = None
    """The model that answers; "" when none may."""
    end: TurnEnd | None = None
    reason: Failure | None = None
    over: bool | None = None
    """False for a turn that has no end, since its runtime went away."""
    attempts: int | None = None
    models: list[str] | None = None
    """The models that are called, in order, each repetition included."""
    profiles: list[str] | None = None
    skips: list[str] | None = None
    """Candidates that are passed over: "anthropic/beta: cooldown"."""
    notices: int | None = None
    told: list[str] | None = None
    """The texts of the notices that are shown."""
    says: str | None = None
    """The message of a turn that failed, or a part of it."""
    statuses: list[str] | None = None
    """The passing status lines, each as it first appears."""
    records: list[str] | None = None
    """The decision records for operators: "openai/alpha billing -> anthropic/beta: next_fallback"."""
    soonest: str | None = None
    """The candidate that can be tried first after everything failed."""
    target: str | None = None
    """The model that a live switch hands the turn back for."""
    cost: str | None = None
    """In currency units, exact; "" when it is not known."""
    rules: list[str] = []
    """Rules that a decision of the turn names."""
    at: Duration | None = None
    """When the turn is over, after the scenario's start."""


class Select(_Table, frozen=True, kw_only=True):
    """The user picks a model."""

    session: str
    model: str = ""
    """"" is the choice "Default"."""
    profile: str = ""
    agent: str = "main"


class Clear(_Table, frozen=True, kw_only=True):
    """The session's override is taken away (SEL-18)."""

    session: str
    agent: str = "main"


class Pin(_Table, frozen=True, kw_only=True):
    """The user pins a profile."""

    session: str
    provider: str
    profile: str = ""
    """"" takes the pin away."""
    agent: str = "main"


class Reset(_Table, frozen=True, kw_only=True):
    """A session begins anew."""

    session: str
    kind: ResetKind = ResetKind.RESET
    agent: str = "main"


class Create(_Table, frozen=True, kw_only=True):
    """A session comes into being."""

    session: str
    parent: str = ""
    model: str = ""
    agent: str = "main"


class Quota(_Table, frozen=True, kw_only=True):
    """A quota check of a subscription."""

    profile: str
    exhausted: bool = False
    resets: Duration | None = None
    """From now."""
    valid: bool = True


class Compaction(_Table, frozen=True, kw_only=True):
    """A compaction of a session's context is completed."""

    session: str
    count: _Count = 1
    agent: str = "main"


class Recorded(_Table, frozen=True, kw_only=True):
    """The transcript stored a transition, or could not."""

    turn: str
    stored: bool


class Recovering(_Table, frozen=True, kw_only=True):
    """A call inside the attempt failed, and the runtime recovers by itself."""

    turn: str
    kind: Kind = Kind.SERVER_ERROR


class Status(_Table, frozen=True, kw_only=True):
    """What `/status` has to show of a session; what is left out is not looked at (LIVE-5)."""

    session: str
    agent: str = "main"
    selected: str | None = None
    active: str | None = None
    """The fallback that answers; "" when the selected model does."""
    reason: Failure | None = None
    strict: bool | None = None


class Health(_Table, frozen=True, kw_only=True):
    """What the documented `usageStats` have to show of a profile (COOL-7); moments are after the start."""

    profile: str
    free: bool | None = None
    """Whether nothing at all blocks it."""
    cooldown_until: Duration | None = None
    cooldown_model: str | None = None
    disabled_until: Duration | None = None
    blocked_until: Duration | None = None
    """The end of a subscription's usage window."""
    reason: str | None = None
    errors: int | None = None


class Step(_Table, frozen=True, kw_only=True):
    """One thing that happens; `at`, `during` and `after` say when."""

    at: Duration | None = None
    during: Duration | None = None
    after: Duration | None = None
    runtime: str = ""
    """Which process it happens in; "main", or the turn's own, if it is not said."""
    expect: Expect | None = None

    turn: Turn | None = None
    select: Select | None = None
    clear: Clear | None = None
    pin: Pin | None = None
    reset: Reset | None = None
    create: Create | None = None
    policy: dict[str, Any] | None = None
    """Adopt this policy; it has the keys of a settings file and takes the place of the whole policy."""
    profiles: list[Profile] | None = None
    """The credentials that there are from now on, with their stored order where `order` stands beside them."""
    order: dict[str, list[str]] | None = None
    remove: str = ""
    """Name of a profile whose credential is removed on purpose."""
    quota: Quota | None = None
    compaction: Compaction | None = None
    take_over: str = ""
    """Id of a turn that this runtime takes over from the one that had it."""
    cancel: str = ""
    """Id of a turn that the user stops."""
    deadline: str = ""
    """Id of a turn whose deadline is said to have passed."""
    no_progress: str = ""
    response: str = ""
    """Id of a turn inside whose attempt a model response is completed."""
    effects: str = ""
    """Id of a turn whose call is about to have an effect."""
    recovering: Recovering | None = None
    recorded: Recorded | None = None
    admitted: str = ""
    restart: bool = False
    """The runtime ends and starts again; turns under way end with it."""
    status: Status | None = None
    health: Health | None = None

    def kinds(self) -> list[str]:
        """Which things this step says; there has to be just one."""
        names = set(self.__struct_fields__) - {"at", "during", "after", "runtime", "expect"}
        said = sorted(name for name in names if getattr(self, name) not in (None, "", False))
        return [name for name in said if name != "order" or "profiles" not in said]


REFERENCES = ("take_over", "cancel", "deadline", "no_progress", "response", "effects", "admitted")
"""Steps that are the id of a turn."""


class Scenario(_Table, frozen=True, kw_only=True):
    """A scenario, read and checked."""

    title: str = ""
    about: str = ""
    shows: list[str] = []
    """Rules that a decision names, or that an expectation which holds rests on."""
    start_ms: Annotated[int, Meta(ge=0, le=10_000_000_000_000)] = 1_790_000_000_000
    seed: Annotated[int, Meta(ge=0, le=(1 << 63) - 1)] = 1
    policy: dict[str, Any] = {}
    profiles: list[Profile] = []
    order: dict[str, list[str]] = {}
    outcomes: list[Outcome] = []
    steps: list[Step] = []


@dataclass(frozen=True, slots=True)
class Loaded:
    """A scenario with its policies as settings."""

    scenario: Scenario
    settings: Settings
    changes: dict[int, Settings]
    """Policies that steps adopt, by the number of the step."""
    error: Callable[[Path, str], BadScript]
    """What is wrong with a part of the file, with its place."""
