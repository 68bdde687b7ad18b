"""The words of the naive model: what each failure means, the documented numbers, and what it keeps in mind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from standby.events import decisions as d
from standby.events import facts as f
from standby.events.policy import Policy
from standby.events.vocabulary import BlockKind, CredentialKind, Failure, TurnEnd, TurnKind

SECOND, MINUTE, DAY = 1000, 60_000, 86_400_000

REASONS: dict[tuple[int | None, str], Failure] = {
    (429, ""): Failure.RATE_LIMIT,
    (529, ""): Failure.OVERLOADED,
    (500, ""): Failure.SERVER_ERROR,
    (None, "ETIMEDOUT"): Failure.TIMEOUT,
    (401, ""): Failure.AUTH,
    (401, "account_deactivated"): Failure.AUTH_PERMANENT,
    (402, ""): Failure.BILLING,
    (404, ""): Failure.MODEL_NOT_FOUND,
    (404, "model_not_found"): Failure.MODEL_NOT_FOUND,
    (400, "unknown_parameter"): Failure.FORMAT,
    (400, "context_length_exceeded"): Failure.CONTEXT_OVERFLOW,
    (400, "content_policy_violation"): Failure.REFUSAL,
    (None, ""): Failure.EMPTY_RESPONSE,
    (418, ""): Failure.UNCLASSIFIED,
}
"""What each failure that the tests report means, by status and code."""

LADDER = (30 * SECOND, MINUTE, 5 * MINUTE)
PERMANENT = (10 * MINUTE, 20 * MINUTE, 40 * MINUTE, 60 * MINUTE)
WHOLE_LADDER = {Failure.AUTH, Failure.UNCLASSIFIED}
GIVES_CHECK_BACK = {
    Failure.AUTH, Failure.AUTH_PERMANENT, Failure.MODEL_NOT_FOUND, Failure.FORMAT, Failure.CONTEXT_OVERFLOW,
}  # fmt: skip
PERSISTENT = {Failure.AUTH, Failure.AUTH_PERMANENT}
KIND_RANK = {CredentialKind.OAUTH: 0, CredentialKind.TOKEN: 1, CredentialKind.API_KEY: 2}
ORDINARY = {TurnKind.INTERACTIVE, TurnKind.SUBAGENT}
NOT_A_FAILURE = {TurnEnd.CANCELLED, TurnEnd.DEADLINE, TurnEnd.RETURNED}

Scope = tuple[str, str, Failure, BlockKind]
"""(profile, model or "" for all, reason, kind)."""


class Violation(AssertionError):
    """Invariant `number` does not hold."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(f"invariant {number}: {message}")
        self.number = number


def must(number: int, condition: object, message: str = "") -> None:
    if not condition:
        raise Violation(number, message)


@dataclass
class Harm:
    until: int
    evidence: int


@dataclass
class Stuck:
    """A sticky fallback of a slot."""

    model: str
    selected: str
    first: int
    until: int


@dataclass
class Talk:
    """A session."""

    model: str = ""
    told: tuple[str, str] | None = None
    pins: dict[str, d.PinSet] = field(default_factory=dict)
    stuck: dict[str, Stuck] = field(default_factory=dict)
    switches: int = 0
    last: str = ""
    """The turn that was requested last."""
    chosen_live: bool = False
    """The user chose a model while it ran."""


@dataclass
class Run:
    """A turn."""

    request: f.TurnRequested
    policy: Policy
    owner: tuple[str, int]
    switches: int
    selected: str = ""
    strict: bool = False
    allowed: tuple[str, ...] = ()
    chain: list[str] = field(default_factory=list)
    sticky_first: bool = False
    index: int = 0
    attempts: list[d.AttemptStarted] = field(default_factory=list)
    started: list[int] = field(default_factory=list)
    reasons: dict[int, Failure] = field(default_factory=dict)
    reported: list[f.Fact] = field(default_factory=list)
    skips: list[d.CandidateSkipped] = field(default_factory=list)
    calling: bool = False
    unsafe: bool = False
    over: bool = False
    cancelled: bool = False
    probed: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    waits: int = 0
    repairs: int = 0
    finals: int = 0
    responses: int = 0

    @property
    def provider(self) -> str:
        return self.chain[self.index].partition("/")[0]

    def tried(self, model: str) -> set[str]:
        return {a.profile for a in self.attempts if a.model == model}


@dataclass
class Picture:
    """What a live system says of itself: to be held against what the naive model thinks."""

    blocked: Callable[[str, str, int], tuple[int, Failure] | None]
    """(profile, model, now) -> until when it is blocked, and by what."""
    selected: dict[str, str]
    told: dict[str, tuple[str, str] | None]
    stuck: dict[tuple[str, str], tuple[str, int]]
    """(session, slot) -> (model, until)."""


def reason_of(fact: f.CallFailed) -> Failure:
    return REASONS[fact.evidence.status, fact.evidence.code]
