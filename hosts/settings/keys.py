"""The keys of a settings file: the literal table that everything else goes by.

A row is `Key(path, check, into, about)`. In `path`, `*` is a name that the file's author chooses, and `[id]` an
array of tables, each named by its own `id`. `check` turns the value into ours; `into` says where it lies in
`Settings`, where `{0}` is the first chosen name of the path, `{1}` the second. So the table is at once the
schema, the reference (`about`) and the map from file to policy: what has no row is an unknown key, and a field
of the policy that no row leads to could not be set.

A row that is a prefix of other rows has a short form: `agents.defaults.model` is text, or the table below it.

`NAMES` holds the checks of chosen names, `REQUIRED` what a table must say once it is there, `PASSED_OVER` the
documented keys that this version does nothing with, and why.
"""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from standby.engine.apply import LOGIC
from standby.engine.rulesets import RULESETS
from standby.events.vocabulary import CredentialKind, Failure, RefusalKind
from standby.hosts.providers.values import Wire
from standby.hosts.settings import validators
from standby.hosts.settings.validators import Check
from standby.hosts.settings.values import EVIDENCE_BYTES_MOST

_MODELS: Final = validators.items(validators.model, distinct=False)
_COUNT: Final = validators.whole(0, 1000)
_TOKENS: Final = validators.whole(1, 1_000_000_000)
_REASONS: Final = {reason.value: reason.value for reason in Failure}
# The gateway's own name for chat completions is understood, too.
_WIRES: Final = {"openai-completions": Wire.OPENAI_CHAT.value} | {wire.value: wire.value for wire in Wire}


class Key(NamedTuple):
    """One row; see the module's text."""

    path: str
    check: Check
    into: str
    about: str


def _consent(cell: validators.Cell) -> object:
    """true: every model, false: none, a list: these."""
    return cell.value if isinstance(cell.value, bool) else _MODELS(cell)


_choose_ruleset: Final = validators.choice({name: name for name in RULESETS})
_COMING: Final = {"2026-04"}
"""Rulesets of specs/rules.md that this version knows by name only."""


def _ruleset(cell: validators.Cell) -> object:
    """A ruleset; for one that is only known, what to choose instead."""
    if isinstance(cell.value, str) and cell.value in _COMING.difference(RULESETS):
        raise cell.error(
            f'"{cell.value}" is known, but its decisions are not implemented in this version; '
            f"choose {', '.join(RULESETS)}"
        )
    return _choose_ruleset(cell)


# fmt: off
KEYS: Final = (
    # ---- models and agents: the documented keys (CFG-5) ------------------------------------------------------
    Key("agents.defaults.model", validators.model, "policy.models.primary",
        "The model of every turn that selects none, as provider/model (SEL-1)."),
    Key("agents.defaults.model.primary", validators.model, "policy.models.primary",
        "The same, beside fallbacks."),
    Key("agents.defaults.model.fallbacks", _MODELS, "policy.models.fallbacks",
        "Models to go on with, in this order (CHAIN-2)."),
    Key("agents.defaults.imageModel", validators.model, "policy.images.primary",
        "The model of turns that read images (CFG-4)."),
    Key("agents.defaults.imageModel.primary", validators.model, "policy.images.primary",
        "The same, beside fallbacks."),
    Key("agents.defaults.imageModel.fallbacks", _MODELS, "policy.images.fallbacks",
        "Models for images to go on with."),
    Key("agents.defaults.models.*.alias", validators.alias, "policy.aliases",
        "A short name of the model, for use wherever a model is named."),
    Key("agents.defaults.timeoutSeconds", validators.seconds, "policy.attempt_timeout_ms",
        "Budget of each attempt; a fallback gets a full one of its own (REC-11)."),
    Key("agents.entries.*.model", validators.model, "policy.agents.{0}.model.primary",
        "The agent's own model: strict, without fallbacks (SEL-2)."),
    Key("agents.entries.*.model.primary", validators.model, "policy.agents.{0}.model.primary",
        "The same, beside fallbacks."),
    Key("agents.entries.*.model.fallbacks", _MODELS, "policy.agents.{0}.model.fallbacks",
        "The agent's own fallbacks, [] for none; also without a primary of its own (SEL-3)."),
    Key("agents.entries.*.runtime.type", validators.choice({"acp": True, "embedded": False}),
        "policy.agents.{0}.acp",
        'With "acp" the primary is for the external harness only (SEL-4).'),

    # ---- credentials: which there are and in what order, never what they hold --------------------------------
    Key("auth.order.*", validators.items(validators.profile, least=1), "policy.order.{0}",
        "Profiles of the provider in the order in which they are to be used (CFG-1, ORD-1)."),
    Key("auth.profiles.*.provider", validators.provider, "policy.profiles.{0}.provider",
        "Whose profile it is."),
    Key("auth.profiles.*.mode", validators.choice({kind.value: kind.value for kind in CredentialKind}),
        "policy.profiles.{0}.mode",
        "The kind that its credential must have (ORD-7)."),
    Key("auth.profiles.*.email", validators.email, "emails.{0}",
        "The account, for people to read."),

    # ---- retries (CFG-5) -------------------------------------------------------------------------------------
    Key("retry.provider.maxRetries", _COUNT, "policy.recovery.max_retries",
        "Retries of the same model after any transient failure; 0 makes none (REC-4)."),
    Key("retry.provider.maxRetryDelayMs", validators.milliseconds, "policy.recovery.max_retry_delay_ms",
        "A provider's longer wait is not waited for: other profile, other model; 0 waits for all (TIME-4)."),
    Key("retry.provider.timeoutMs", validators.whole(1, validators.LONGEST_MS), "request_timeout_ms",
        "Most time for one request of the built-in runner."),

    # ---- providers -------------------------------------------------------------------------------------------
    Key("models.providers.*.baseUrl", validators.url, "providers.{0}.base_url",
        "Where the provider is; needed only for one that is not known by name."),
    Key("models.providers.*.api", validators.choice(_WIRES), "providers.{0}.wire",
        "What it speaks."),
    Key("models.providers.*.apiKeyEnv", validators.variables, "providers.{0}.api_key_env",
        "The environment variable that holds the key, or several to try in order."),
    Key("models.providers.*.headers.*", validators.header_value, "providers.{0}.headers.{1}",
        "Sent with every request; not for credentials."),
    Key("models.providers.*.models.[id].contextWindow", _TOKENS, "policy.windows.{0}/{1}",
        "Tokens that the model can take in (CHAIN-8)."),
    Key("models.providers.*.models.[id].contextTokens", _TOKENS, "policy.context_tokens.{0}/{1}",
        "A lower limit that is in effect here."),
    Key("models.providers.*.models.[id].cost.input", validators.price, "policy.prices.{0}/{1}.input",
        "Price of a million input tokens, in units of your currency (FLOW-13)."),
    Key("models.providers.*.models.[id].cost.output", validators.price, "policy.prices.{0}/{1}.output",
        "Price of a million output tokens."),
    Key("models.providers.*.models.[id].cost.cacheRead", validators.price, "policy.prices.{0}/{1}.cached",
        "Price of a million input tokens read from the provider's cache."),

    # ---- ours ------------------------------------------------------------------------------------------------
    Key("standby.ruleset", _ruleset, "policy.ruleset",
        "The revision of the rules that decides."),
    Key("standby.logic", validators.whole(1, LOGIC), "policy.logic",
        "The number of the decision code."),
    Key("standby.rememberedDefaults.*", validators.model, "policy.agents.{0}.remembered",
        "What the agent's user chose as default for new sessions: the primary in effect (SEL-13)."),
    Key("standby.recovery.baseMs", validators.milliseconds, "policy.recovery.base_ms",
        "Delay before the first retry; it doubles from there (REC-1)."),
    Key("standby.recovery.rateLimitRetries", _COUNT, "policy.recovery.rate_limit_retries",
        "Most retries of one model while it is rate limited (REC-1)."),
    Key("standby.recovery.rateLimitCapMs", validators.milliseconds, "policy.recovery.rate_limit_cap_ms",
        "Longest delay between them, unless the provider asks for more."),
    Key("standby.recovery.transientRetries", _COUNT, "policy.recovery.transient_retries",
        "Most retries after other transient failures (REC-2)."),
    Key("standby.recovery.transientWindowMs", validators.milliseconds, "policy.recovery.transient_window_ms",
        "How long an outage is retried in all (REC-2)."),
    Key("standby.recovery.transientCapMs", validators.milliseconds, "policy.recovery.transient_cap_ms",
        "Longest delay between them."),
    Key("standby.stickiness.idleMs", validators.milliseconds, "policy.stickiness.idle_ms",
        "A fallback stays first this long after its last use (STICK-2)."),
    Key("standby.stickiness.capMs", validators.milliseconds, "policy.stickiness.cap_ms",
        "And never longer than this after its first use."),
    Key("standby.probes.intervalMs", validators.milliseconds, "policy.probes.interval_ms",
        "Least time between two checks of a provider that is cooling down (PROBE-3)."),
    Key("standby.probes.marginMs", validators.milliseconds, "policy.probes.margin_ms",
        "How long before the end of a cooldown the primary may be checked (PROBE-3)."),
    Key("standby.skipTtlMs", validators.milliseconds, "policy.skip_ttl_ms",
        "How long a fallback that could not authenticate is skipped; 0 is off (SKIP-1)."),
    Key("standby.sharedMarkers", validators.flag, "policy.shared_markers",
        "Skip markers and throttles hold for all processes on a log (OURS-14)."),
    Key("standby.localCooldownMs", validators.milliseconds, "policy.local_cooldown_ms",
        "Cooldown of our own after a rate limit that states no wait; 0 is off (OURS-8)."),
    Key("standby.selfManaged", validators.items(validators.provider), "policy.self_managed",
        "Further providers that manage their availability themselves (COOL-11)."),
    Key("standby.consent.*", _consent, "policy.consent.{0}",
        "Whether a turn may go to another model after this failure: true, false, or to which (OURS-7)."),
    Key("standby.rows.[id].reason", validators.choice(_REASONS), "policy.rows.{0}.reason",
        "What a failure is that the row matches (OURS-6)."),
    Key("standby.rows.[id].providers", validators.items(validators.provider, least=1),
        "policy.rows.{0}.providers",
        "Only failures of these providers."),
    Key("standby.rows.[id].statuses", validators.statuses, "policy.rows.{0}.statuses",
        "HTTP statuses."),
    Key("standby.rows.[id].codes", validators.literals, "policy.rows.{0}.codes",
        "Structured codes."),
    Key("standby.rows.[id].types", validators.literals, "policy.rows.{0}.types",
        "Structured types."),
    Key("standby.rows.[id].params", validators.literals, "policy.rows.{0}.params",
        "Parameters that the provider complains about."),
    Key("standby.rows.[id].text", validators.literals, "policy.rows.{0}.text",
        "Words that the reply holds, whatever their case."),
    Key("standby.rows.[id].kind", validators.choice({kind.value: kind.value for kind in RefusalKind}),
        "policy.rows.{0}.kind",
        "Which refusal it is."),
    Key("standby.rows.[id].flags", validators.literals, "policy.rows.{0}.flags",
        "Further findings that the row switches on, such as long_window."),
    Key("standby.rows.[id].note", validators.name, "policy.rows.{0}.note",
        "Why the row is there."),
    Key("standby.evidenceBytes", validators.whole(0, EVIDENCE_BYTES_MOST), "evidence_bytes",
        "How much text of a failure is kept beside the log; 0 keeps none."),
    Key("standby.synchronous", validators.choice({"full": "full", "normal": "normal"}), "synchronous",
        'With "normal" a power cut may take the last events along.'),
)
# fmt: on

NAMES: Final[dict[str, Check]] = {
    "agents.defaults.models.*": validators.model,
    "agents.entries.*": validators.agent,
    "auth.order.*": validators.provider,
    "auth.profiles.*": validators.profile,
    "models.providers.*": validators.provider,
    "models.providers.*.headers.*": validators.header_name,
    "models.providers.*.models.[id]": validators.model_name,
    "standby.rememberedDefaults.*": validators.agent,
    "standby.consent.*": validators.choice(_REASONS),
    "standby.rows.[id]": validators.name,
}

REQUIRED: Final[dict[str, tuple[str, ...]]] = {
    "auth.profiles.*": ("provider",),
    "models.providers.*.models.[id].cost": ("input", "output"),
    "standby.rows.[id]": ("reason",),
}

PASSED_OVER: Final[dict[str, str]] = {
    "auth.cooldowns": "has no effect: the rules of 2026-10 have their windows and ladders built in (CFG-3)",
    "agents.defaults.embeddedAgent.cyberFailover": (
        "has no effect: this version never retries a refusal with another access program (CFG-5, CYB-4)"
    ),
}


@dataclass(slots=True)
class Node:
    """The table as a tree: what may follow after a prefix of a path."""

    pattern: str = ""
    children: dict[str, "Node"] = field(default_factory=dict)
    """By the next segment, `*` and `[id]` among them."""
    key: Key | None = None
    passed_over: str = ""


def _tree() -> Node:
    root = Node()
    for path, key in [(key.path, key) for key in KEYS] + [(path, None) for path in PASSED_OVER]:
        node = root
        for segment in path.split("."):
            pattern = f"{node.pattern}.{segment}" if node.pattern else segment
            node = node.children.setdefault(segment, Node(pattern))
        node.key = key
        node.passed_over = PASSED_OVER.get(path, "")
    return root


TREE: Final = _tree()
