"""Classification: from typed evidence to a reading of it (CLS, OURS-2 to OURS-6). Pure.

A reading says what failed (`reason`), which row said so, which rows matched too and lost, how long the provider
asked to wait, and the few facts that later decisions ask for. It is made from `Evidence` alone, without the
text, so that it can be made again at any time.
"""

from collections.abc import Iterable
from functools import lru_cache

import msgspec

from standby.engine.classify.codes import family_of_code
from standby.engine.classify.normalise import squash
from standby.engine.classify.table_rows import Context, Entry
from standby.engine.classify.tables import RULESETS, TABLE, ruleset_table
from standby.events.evidence import Evidence, OperatorRow, StatedWait
from standby.events.vocabulary import Failure, RefusalKind, Stage, WaitSource

NOTHING = "nothing"
"""Row id when no row matched."""
BLANK = ("shape.blank",)
"""The hits of a reply that says nothing at all."""
_ENVELOPES = ("status.envelope", "status.leading")

# A member looked up on its enum costs a call each time; every failure comes this way.
_RATE_LIMIT, _BILLING, _FORMAT, _TIMEOUT = (
    Failure.RATE_LIMIT, Failure.BILLING, Failure.FORMAT, Failure.TIMEOUT,
)  # fmt: skip
_GENERIC, _STREAM = RefusalKind.GENERIC, Stage.STREAM
_SUBSCRIPTION_RESET, _BUCKET_RESET = WaitSource.SUBSCRIPTION_RESET, WaitSource.BUCKET_RESET

_LONG_WAIT_MS = 60_000
_SUBSCRIPTION_WAIT_MS = 600_000

_STATUS = {
    Failure.BILLING: 402, Failure.RATE_LIMIT: 429, Failure.OVERLOADED: 503, Failure.AUTH: 401,
    Failure.AUTH_PERMANENT: 403, Failure.TIMEOUT: 408, Failure.FORMAT: 400, Failure.MODEL_NOT_FOUND: 404,
    Failure.SESSION_EXPIRED: 410, Failure.SERVER_ERROR: 500, Failure.TLS_CERTIFICATE: 502,
    Failure.CONTEXT_OVERFLOW: 413, Failure.REQUEST_SIZE_CEILING: 413,
}  # fmt: skip


class Reading(msgspec.Struct, gc=False, frozen=True, kw_only=True):
    """What a failure is taken to be."""

    reason: Failure
    kind: RefusalKind = RefusalKind.GENERIC
    row: str
    """Id of the row that won; "nothing" when none matched."""
    rules: tuple[str, ...] = ()
    """Ids of the documented rules behind the reading; none where the row only knows a provider's own words."""
    matched: tuple[str, ...] = ()
    """What the winning row matched: the status, codes, phrase lines."""
    also_matched: tuple[str, ...] = ()
    """Rows that matched too and lost, each with what it matched: `rate.status (429)`."""
    retry_after_ms: int | None = None
    """The wait that the provider stated, from the moment its reply came; None if it stated none."""
    wait_source: WaitSource | None = None
    long_window: bool = False
    """A day, week, month or plan is used up: trying the same model again soon is pointless."""
    missing_model: bool = False
    """The failure says outright that the model is unknown, missing or retired (FLOW-8)."""
    size_ceiling: bool = False
    """One request asks for more than the provider grants in a whole window (CLS-18)."""
    names_reasoning: bool = False
    """The provider names a reasoning or thinking parameter (CLS-22)."""
    organisation_tpm: bool = False
    """The tokens per minute of a whole organisation are used up (GATE-1)."""
    subscription: bool = False
    """A usage window whose reset the provider reports: a block of its own (COOL-13)."""
    aborted: bool = False
    """Somebody stopped the call on purpose; the provider did not fail (ADV-2)."""
    status: int | None = None
    """Status to show: the provider's own, else the one that the reason stands for (CLS-23)."""
    table: int = TABLE


def status_of(reason: Failure) -> int | None:
    """The HTTP-like status that a reason stands for when the provider gave none."""
    return _STATUS.get(reason)


def recognised(reading: Reading) -> bool:
    """Whether anything was recognised: a row decided, and not one that only labels the lack of detail."""
    return reading.row.partition(".")[0] != NOTHING and not reading.aborted


@lru_cache(maxsize=1024)
def _group(hit: str) -> str:
    return hit.partition(".")[0]


def _context(evidence: Evidence, families: frozenset[str]) -> Context:
    hits = evidence.hits
    tokens = {squash(evidence.code), squash(evidence.error_type), *evidence.tokens}
    tokens.update([family_of_code(token) for token in tokens])
    tokens.discard("")
    said = {*hits, *map(_group, hits)}
    status, soft = evidence.status, evidence.soft
    if status is not None and status < 400:
        status = None
    if status is None and "marker402" in said:
        status, soft = 402, True
    return Context(
        families,
        status,
        soft,
        tokens,
        said,
        hits,
        evidence.param,
        evidence.origin,
        not tokens and (hits == BLANK or (not hits and evidence.size == 0)),
    )


def _matched(one: Entry, context: Context) -> tuple[str, ...]:
    """What in the evidence made a row match."""
    found: list[str] = []
    if one.statuses and context.status is not None:
        found.append(str(context.status))
    if one.tokens:
        found += sorted(context.tokens & one.tokens)
    if one.wanted:
        found += [hit for hit in context.hits if hit in one.wanted or _group(hit) in one.wanted]
    if one.row.params:
        found.append(f"param {context.param}")
    return tuple(found[:8])


def _names_reasoning(context: Context) -> bool:
    param = squash(context.param)
    return "reasoning" in context.said or "reasoning" in param or "thinking" in param


def _is_long(context: Context, flags: tuple[str, ...], wait_ms: int | None) -> bool:
    """Whether the window is long: a per-minute unit speaks against words such as "quota exceeded"."""
    per_day = any("perday" in token for token in context.tokens)
    if per_day or "long_window" in flags or (wait_ms is not None and wait_ms > _LONG_WAIT_MS):
        return True
    return "long" in context.said and "short" not in context.said


def classify(
    evidence: Evidence, *, ruleset: str = "2026-10", extra_rows: tuple[OperatorRow, ...] = ()
) -> Reading:
    """What the evidence says under a ruleset. Raises KeyError for an unknown ruleset, nothing else.

    `extra_rows` are the operator's, tried first (OURS-6); their text literals count only if the evidence was
    extracted with the same rows.
    """
    table = RULESETS[ruleset]
    context = _context(evidence, table.families(evidence.provider))
    winners = ruleset_table(ruleset, extra_rows).matches(context)
    wait = effective_wait(evidence.waits)
    wait_ms = None if wait is None else wait.ms
    if winners:
        won, *losers = winners
        row = won.row
        reason = row.reason or table.nothing
        name = row.id if row.reason is not None or row.flags else f"{NOTHING}.{row.id}"
        flags, kind = row.flags, row.kind
        matched, rules = _matched(won, context), row.rules
        more = [rule for rule in _rules(won, losers, context, evidence) if rule not in rules]
        if more:
            rules = (*rules, *[rule for rule in more if rule in table.general])
    else:
        losers, reason, name = [], table.nothing, NOTHING
        flags, kind = (), _GENERIC
        matched, rules = (), table.nothing_rules
    limited = reason in (_RATE_LIMIT, _BILLING)
    long_window = limited and _is_long(context, flags, wait_ms)
    return Reading(
        reason=reason,
        kind=kind,
        row=name,
        rules=rules,
        matched=matched,
        also_matched=tuple([_loser(one, context) for one in losers[:12]]),
        retry_after_ms=wait_ms,
        wait_source=None if wait is None else wait.source,
        long_window=long_window,
        missing_model="missing_model" in flags,
        size_ceiling="size_ceiling" in flags,
        names_reasoning="names_reasoning" in flags or (reason is _FORMAT and _names_reasoning(context)),
        organisation_tpm="organisation_tpm" in flags
        or (reason is _RATE_LIMIT and "org" in context.said and "tpm" in context.said),
        subscription="subscription" in flags or (limited and _is_subscription(context, wait_ms, evidence)),
        aborted="aborted" in flags,
        status=_shown_status(evidence, context, reason),
    )


def _loser(one: Entry, context: Context) -> str:
    matched = _matched(one, context)
    return f"{one.row.id} ({', '.join(matched)})" if matched else one.row.id


def _rules(won: Entry, losers: list[Entry], context: Context, evidence: Evidence) -> list[str]:
    """Rules that made the winner's evidence count, or put it before the others."""
    reason = won.row.reason
    rules: list[str] = []
    if won.statuses:
        if not context.soft:
            rules.append("CLS-29")
        elif reason is not None and not context.said.isdisjoint(_ENVELOPES):
            rules.append("CLS-8")
    elif won.coded:
        if evidence.stage is _STREAM:
            rules.append("CLS-20")
        if any(one.row.reason is not reason and (one.generic or not one.coded) for one in losers):
            rules.append("OURS-2")
    elif won.wanted and any(one.generic and one.row.reason is not reason for one in losers):
        rules.append("OURS-2")
    if reason is _RATE_LIMIT and any(one.row.reason is _TIMEOUT for one in losers):
        rules.append("CLS-26")
    if "codex" in context.families and (won.coded or (won.statuses and context.soft)):
        rules.append("CLS-30")
    return rules


def _shown_status(evidence: Evidence, context: Context, reason: Failure) -> int | None:
    if evidence.status is not None and evidence.status >= 400:
        return evidence.status
    return context.status or status_of(reason)


def _is_subscription(context: Context, wait_ms: int | None, evidence: Evidence) -> bool:
    if any(w.source is _SUBSCRIPTION_RESET and not w.ignored for w in evidence.waits):
        return True
    if "free-models" in context.said:  # an allowance of some models, and not the account's window
        return False
    return "periodic" in context.said and wait_ms is not None and wait_ms >= _SUBSCRIPTION_WAIT_MS


def effective_wait(waits: Iterable[StatedWait]) -> StatedWait | None:
    """The wait to obey: the longest explicit one (OURS-4), else that of an exhausted bucket (TIME-2)."""
    explicit: StatedWait | None = None
    bucket: StatedWait | None = None
    for wait in waits:
        if wait.ignored:
            continue
        if wait.source is _BUCKET_RESET:
            if bucket is None or wait.ms > bucket.ms:
                bucket = wait
        elif explicit is None or wait.ms > explicit.ms:
            explicit = wait
    return explicit or bucket
