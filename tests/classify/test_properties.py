"""Properties of classification, over recorded bodies and over everything that Hypothesis thinks of."""

import json
import random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from standby.engine.classify.classifier import Reading, classify
from standby.engine.reading.extract import Reply, extract, read
from standby.events.evidence import Evidence
from standby.events.vocabulary import Failure, Origin, Stage
from tests.classify.cases import Case, load, reading_of, reply_of

RULESETS = ("2026-10", "2026-04")
CASES = [*load("failures_recorded.jsonl"), *load("failures_heldout.jsonl"), *load("failures_reports.jsonl")]


def parsed(case: Case) -> Any:
    """The body as JSON, or None if it is none."""
    try:
        return json.loads(case["body"])
    except (KeyError, TypeError, ValueError):
        return None


JSON_CASES = [case for case in CASES if isinstance(parsed(case), dict | list)]

# Words that mean something, so that arbitrary bodies come near to real ones.
LINES = (
    "error message code type status detail retry_after resets_at rate limit exceeded insufficient",
    "quota credits",
    "429 503 model not found tokens Please try again in 6s -1 nan 1e309 {'a': <html> data: [REDACTED] 余额不足",
    "content_filter null [ ] \x00 \ud800 \u202e",
)
WORDS = st.sampled_from([word for line in LINES for word in line.split(" ")])
TEXTS = st.one_of(st.text(max_size=60), st.lists(WORDS, max_size=12).map(" ".join))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS | st.text(max_size=8), inner, max_size=5),
    max_leaves=25,
)
REPLIES = st.builds(
    Reply,
    provider=st.sampled_from(["", "openai", "zai", "openrouter", "Ünknown", "x" * 300]),
    status=st.none() | st.integers(-5, 700),
    code=st.none() | TEXTS,
    error_type=st.none() | TEXTS,
    param=st.none() | TEXTS,
    headers=st.dictionaries(
        st.sampled_from(
            [
                "Retry-After",
                "retry-after-ms",
                "x-ratelimit-reset-tokens",
                "x-ratelimit-remaining-tokens",
                "Date",
            ]
        )
        | st.text(max_size=8),
        TEXTS,
        max_size=4,
    ),
    body=VALUES | st.binary(max_size=80),
    message=st.none() | TEXTS,
    origin=st.sampled_from(Origin),
    stage=st.sampled_from(Stage),
    received_ms=st.sampled_from([0, 1, 1_772_000_000_000, 10**18]),
)


@given(REPLIES, st.sampled_from(RULESETS))
def test_reading_never_raises_and_can_be_repeated(reply: Reply, ruleset: str) -> None:
    evidence = extract(reply).evidence
    found = classify(evidence, ruleset=ruleset)
    assert isinstance(found, Reading)
    assert found.reason in Failure
    stored = msgspec.json.decode(msgspec.json.encode(evidence), type=Evidence)
    assert classify(stored, ruleset=ruleset) == found


def shuffled(value: Any, chance: random.Random) -> Any:
    if isinstance(value, dict):
        items = [(key, shuffled(inner, chance)) for key, inner in value.items()]
        chance.shuffle(items)
        return dict(items)
    if isinstance(value, list):
        return [shuffled(inner, chance) for inner in value]
    return value


@pytest.mark.parametrize("seed", range(4))
def test_the_order_of_keys_does_not_matter(seed: int) -> None:
    chance = random.Random(seed)
    for case in JSON_CASES:
        reply = reply_of(case)
        expected = extract(msgspec.structs.replace(reply, body=parsed(case))).evidence
        body = shuffled(parsed(case), chance)
        assert extract(msgspec.structs.replace(reply, body=body)).evidence == expected, case["id"]


def test_waits_of_several_texts_do_not_depend_on_their_order() -> None:
    texts = {"message": "retry in 9s", "detail": "retry in 6s", "title": "retry in 7s"}
    backwards = dict(reversed(texts.items()))
    assert extract(Reply(body=texts)).evidence == extract(Reply(body=backwards)).evidence


def in_case(value: Any, change: Any) -> Any:
    """The same JSON value with all its texts, not its keys, in another letter case."""
    if isinstance(value, dict):
        return {key: in_case(inner, change) for key, inner in value.items()}
    if isinstance(value, list):
        return [in_case(inner, change) for inner in value]
    return change(value) if isinstance(value, str) and "{" not in value else value


@pytest.mark.parametrize("change", [str.upper, str.lower, str.swapcase], ids=["upper", "lower", "swapped"])
def test_letter_case_does_not_matter(change: Any) -> None:
    for case in CASES:
        reply = reply_of(case)
        body = parsed(case)
        if body is None:
            text = case.get("body") or ""
            body = text if "{" in text else change(text)
        else:
            body = in_case(body, change)
        other = msgspec.structs.replace(reply, body=body, code=change(reply.code) if reply.code else None)
        assert read(other, ruleset=case.get("ruleset", "2026-10")) == reading_of(case), case["id"]


UNRELATED: dict[str, Any] = {
    "trace_ref": "abc", "took": 17, "x-flags": ["a", "b"], "server": {"region": "eu", "build": 503},
    "advert": "insufficient credits? rate limit exceeded? call us", "nothing": None, "beta": True,
}  # fmt: skip


@pytest.mark.parametrize("name", UNRELATED)
def test_an_unrelated_field_changes_nothing(name: str) -> None:
    for case in JSON_CASES:
        reply = reply_of(case)
        expected = msgspec.structs.replace(extract(reply).evidence, size=0)
        body = parsed(case)
        places = [body, *(body if isinstance(body, list) else ())]
        places += [p["error"] for p in places if isinstance(p, dict) and isinstance(p.get("error"), dict)]
        for place in places:
            if isinstance(place, dict):
                place[name] = UNRELATED[name]
        evidence = extract(msgspec.structs.replace(reply, body=body)).evidence
        assert msgspec.structs.replace(evidence, size=0) == expected, case["id"]


@given(st.sampled_from(JSON_CASES), st.text(min_size=1, max_size=12), TEXTS | st.integers() | st.booleans())
def test_no_field_of_an_unknown_name_is_read(case: Case, name: str, value: object) -> None:
    body = parsed(case)
    if not isinstance(body, dict) or name in body:
        return
    unknown = f"zz{name}zz"
    reply = reply_of(case)
    with_field = read(msgspec.structs.replace(reply, body={**body, unknown: value}))
    assert with_field == read(msgspec.structs.replace(reply, body=body))


def mutated(text: str, chance: random.Random) -> str:
    """The text after a few edits: letters lost, doubled, swapped, nested, cut, or the whole repeated."""
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(text) + 1)
        to = min(len(text), at + chance.randint(0, 30))
        edit = chance.randrange(8)
        if edit == 0:
            text = text[:at] + text[to:]
        elif edit == 1:
            text = text[:to] + text[at:]
        elif edit == 2:
            text = text[:at] + chance.choice("{}[]\"\\:,'\n\0<>&%$ 9-.余﷽") + text[at:]
        elif edit == 3:
            text = text[:at]
        elif edit == 4:
            text = text[at:]
        elif edit == 5:
            text = json.dumps({"error": {"message": text}})
        elif edit == 6:
            text = (text + " ") * chance.randint(1, 40)
        else:
            text = (
                text[:at] + chance.choice(CASES).get("body", "") + text[at:] if chance.random() < 0.3 else text
            )
    return text


@pytest.mark.parametrize("seed", range(20))
def test_mutated_bodies_are_read_without_raising(seed: int) -> None:
    chance = random.Random(seed)
    for case in chance.sample(CASES, 60):
        text = mutated(str(case.get("body") or ""), chance)
        reply = msgspec.structs.replace(reply_of(case), body=text, status=chance.choice([None, 400, 429, 503]))
        evidence = extract(reply, limit_bytes=chance.choice([0, 64, 2048])).evidence
        assert len(msgspec.json.encode(evidence)) < 16_384, "evidence stays small whatever comes in"
        for ruleset in RULESETS:
            assert classify(evidence, ruleset=ruleset).reason in Failure
