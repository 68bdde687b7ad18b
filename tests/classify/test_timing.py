"""What the provider says about time: the TIME rules and OURS-4."""

from typing import Any

import pytest

from standby.engine.reading.extract import Reply, extract, read
from standby.engine.reading.sdk_waits import sdk_cap_ms, surfaces_at_once
from standby.engine.reading.waits import ABSURD_MS, duration_ms
from standby.events.evidence import StatedWait
from standby.events.vocabulary import WaitSource

NOW_MS = 1_772_000_000_000  # 2026-02-25T06:13:20Z


def wait(
    text: object = None, headers: dict[str, str] | None = None, now_ms: int = NOW_MS, **fields: Any
) -> int | None:
    reply = Reply(body=text, headers=headers or {}, received_ms=now_ms, status=429, **fields)
    return read(reply).retry_after_ms


def waits(text: object = None, headers: dict[str, str] | None = None) -> tuple[StatedWait, ...]:
    reply = Reply(body=text, headers=headers or {}, received_ms=NOW_MS, status=429)
    return extract(reply).evidence.waits


@pytest.mark.rule("TIME-1", "OURS-4")
@pytest.mark.parametrize(
    ("headers", "ms"),
    [
        ({"retry-after-ms": "320"}, 320),
        ({"Retry-After-Ms": "1250.2"}, 1251),
        ({"retry-after": "17"}, 17_000),
        ({"RETRY-AFTER": "1.5"}, 1_500),
        ({"Retry-After": "Wed, 25 Feb 2026 06:14:20 GMT"}, 60_000),
        ({"Retry-After": "Wednesday, 25-Feb-26 06:14:20 GMT"}, 60_000),
        ({"Retry-After": "Wed Feb 25 06:14:20 2026"}, 60_000),
        ({"Retry-After": "Tue, 14 Nov 2023 22:00:00 GMT"}, 0),
        ({"Retry-After": "1772000042"}, 42_000),
        ({"x-ms-retry-after-ms": "99"}, 99),
        ({"retry-after": "30s"}, 30_000),
    ],
)
def test_headers(headers: dict[str, str], ms: int) -> None:
    assert wait("", headers) == ms


@pytest.mark.rule("TIME-1", "OURS-4")
@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("Please try again in 6s.", 6_000),
        ("Please retry in 32s", 32_000),
        ("Please retry in 32.812s.", 32_812),
        ("try again in 6ms", 6),
        ("Please try again in 1m30s. Need more?", 90_000),
        ("Please try again in 7m12s", 432_000),
        ("Please try again in 58 hours.", 208_800_000),
        ("Try again in 3 days 4 hours 5 minutes", 273_900_000),
        ("available again in 2 days, 3 hours and 5 minutes", 183_900_000),
        ("Please retry after 86400 seconds.", 86_400_000),
        ("Your quota will reset after 18h31m10s.", 66_670_000),
        ("wait 6 seconds for your limit to reset", 6_000),
        ("Retry-After: 120 seconds", 120_000),
        ("retry after 30", 30_000),
        ("retry_after=2.5", 2_500),
        ("please wait an hour", 3_600_000),
        ("try again in about 5 minutes", 300_000),
        ("Retry after Wed, 25 Feb 2026 06:14:20 GMT", 60_000),
        ("Your limit will reset at 2026-02-25T06:14:20Z", 60_000),
        ("resets at 2026-02-25 07:13:20+01:00", 0),
        ("resets 7am (UTC)", 2_800_000),
        ("请在30秒后重试", 30_000),
        ("请5分钟后再试", 300_000),
        ("ｐｌｅａｓｅ　ｒｅｔｒｙ　ｉｎ　６ｓ", 6_000),
        ("Claude AI usage limit reached|1772000060", 60_000),
        ("You will regain access on 2026-03-01 at 00:00 UTC.", 323_200_000),
        ("try again at Mar 1st, 2026 3:08 PM UTC", 377_680_000),
        ("resets Feb 26 at 12am (UTC)", 64_000_000),
        ("Quota will be replenished in 10.05:03:02.", 882_182_000),
        ("Quota will be replenished in 00:00:42", 42_000),
    ],
)
def test_running_text(text: str, ms: int) -> None:
    assert wait(text) == ms
    assert wait({"error": {"message": text}}) == ms
    assert wait(text.upper()) == ms


@pytest.mark.rule("TIME-1")
@pytest.mark.parametrize(
    "text",
    [
        "Please try again later",
        "retry 3 times",
        "Retry in 7 attempts",
        "wait for the next release of version 2.5",
        "available models: 12",
        "reset your password",
        "limit 30000, used 29000",
        # Moments in nobody knows whose zone, or in one that needs the machine's own table.
        "try again at Mar 1st, 2026 3:08 PM",
        "try again at Mar 1st, 2026 3:08 PM UTC+2",
        "resets at 3pm (America/New_York)",
        "resets Mar 1 at 3pm (Europe/Berlin)",
        "reset at 10:00:00",
        "resets at 3pm (UTC+2)",
        "try again at Feb 31, 2026 3:08 PM UTC",
    ],
)
def test_text_without_a_wait(text: str) -> None:
    assert wait(text) is None


@pytest.mark.rule("TIME-1", "OURS-4")
@pytest.mark.parametrize(
    ("body", "ms", "source"),
    [
        ({"error": {"retry_after": 12}}, 12_000, WaitSource.BODY_FIELD),
        ({"error": {"retryAfter": "12"}}, 12_000, WaitSource.BODY_FIELD),
        ({"retry_after_ms": 12}, 12, WaitSource.BODY_FIELD),
        ({"error": {"retry_after_seconds": 1.5}}, 1_500, WaitSource.BODY_FIELD),
        ({"error": "loading", "estimated_time": 20.0}, 20_000, WaitSource.BODY_FIELD),
        ({"error": {"details": [{"retryDelay": "32s"}]}}, 32_000, WaitSource.RETRY_INFO),
        (
            {"error": {"details": [{"retryDelay": {"seconds": "1", "nanos": 5e8}}]}},
            1_500,
            WaitSource.RETRY_INFO,
        ),
        ({"error": {"resets_in_seconds": 13872}}, 13_872_000, WaitSource.SUBSCRIPTION_RESET),
        ({"error": {"resets_at": 1772000060}}, 60_000, WaitSource.SUBSCRIPTION_RESET),
        ({"error": {"resets_at": "2026-02-25T06:14:20Z"}}, 60_000, WaitSource.SUBSCRIPTION_RESET),
        ({"error": {"reset_at": 1772000060000}}, 60_000, WaitSource.SUBSCRIPTION_RESET),
        ({"metadata": {"quotaResetDelay": "1h0m1s"}}, 3_601_000, WaitSource.SUBSCRIPTION_RESET),
        ({"retry_in": "PT1M30S"}, 90_000, WaitSource.BODY_FIELD),
    ],
)
def test_fields_of_the_body(body: object, ms: int, source: WaitSource) -> None:
    found = read(Reply(status=429, body=body, received_ms=NOW_MS))
    assert (found.retry_after_ms, found.wait_source) == (ms, source)


@pytest.mark.rule("TIME-1")
def test_the_whole_body_is_read_before_it_is_cut() -> None:
    body = "x " * 9_000 + "Please try again in 6s"
    extracted = extract(Reply(status=429, body=body), limit_bytes=100)
    assert len(extracted.text) == 100
    assert [w.ms for w in extracted.evidence.waits] == [6_000]


@pytest.mark.rule("OURS-4")
def test_the_longest_explicit_wait_wins() -> None:
    assert wait("try again in 6s", {"retry-after": "20"}) == 20_000
    assert wait("try again in 60s", {"retry-after": "20"}) == 60_000
    assert wait({"error": {"message": "retry in 3s", "retry_after": 5}}, {"retry-after-ms": "900"}) == 5_000
    codex = {"error": {"type": "usage_limit_reached", "resets_in_seconds": 100, "resets_at": 1772000999}}
    assert wait(codex) == 100_000, "one reset told twice: the span needs no clock"


@pytest.mark.rule("TIME-2")
@pytest.mark.parametrize(
    ("headers", "ms"),
    [
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"}, 360_000),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "7.66s"}, 7_660),
        (
            {
                "anthropic-ratelimit-tokens-remaining": "0",
                "anthropic-ratelimit-tokens-reset": "2026-02-25T06:14:20Z",
            },
            60_000,
        ),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1772000060"}, 60_000),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1772000060000"}, 60_000),
        ({"ratelimit-remaining": "0", "ratelimit-reset": "30"}, 30_000),
        (
            {
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "5s",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "1m",
            },
            60_000,
        ),
    ],
)
def test_exhausted_buckets(headers: dict[str, str], ms: int) -> None:
    found = read(Reply(status=429, headers=headers, received_ms=NOW_MS))
    assert (found.retry_after_ms, found.wait_source) == (ms, WaitSource.BUCKET_RESET)


@pytest.mark.rule("TIME-2")
def test_an_explicit_instruction_beats_every_bucket() -> None:
    bucket = {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"}
    assert wait("try again in 2s", bucket) == 2_000
    assert wait("", {**bucket, "retry-after": "0"}) == 0


@pytest.mark.rule("TIME-2")
def test_a_quoted_upstream_reply_brings_its_headers() -> None:
    quoted = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1772000060000"}
    body = {"error": {"message": "Rate limit exceeded", "code": 429, "metadata": {"headers": quoted}}}
    assert wait(body, provider="openrouter") == 60_000


@pytest.mark.rule("TIME-5")
def test_a_full_refill_is_no_minimum_while_something_is_left() -> None:
    left = {"x-ratelimit-remaining-tokens": "1200", "x-ratelimit-reset-tokens": "6m0s"}
    assert wait("", left) is None
    assert wait("Please try again in 1.4s", left) == 1_400
    assert wait("", {"x-ratelimit-reset-tokens": "6m0s"}) is None, "nothing says that it is exhausted"


@pytest.mark.rule("COOL-13", "ORD-8")
def test_usage_windows_told_by_headers() -> None:
    claude = {
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": "1772003600",
        "anthropic-ratelimit-unified-7d-status": "allowed",
        "anthropic-ratelimit-unified-7d-reset": "1772400000",
    }
    found = read(Reply(provider="anthropic", status=429, headers=claude, received_ms=NOW_MS))
    assert (found.retry_after_ms, found.subscription) == (3_600_000, True)
    codex = {
        "X-Codex-Primary-Used-Percent": "100",
        "X-Codex-Primary-Reset-After-Seconds": "600",
        "X-Codex-Secondary-Used-Percent": "80",
        "X-Codex-Secondary-Reset-After-Seconds": "90000",
    }
    found = read(Reply(provider="openai-codex", status=429, headers=codex))
    assert (found.retry_after_ms, found.subscription) == (600_000, True)


@pytest.mark.rule("OURS-4")
@pytest.mark.parametrize(
    ("text", "headers"),
    [
        (None, {"retry-after": "-5"}),
        (None, {"retry-after": "nan"}),
        (None, {"retry-after": "inf"}),
        (None, {"retry-after": "soon"}),
        (None, {"retry-after": "9" * 40}),
        (None, {"retry-after-ms": "-1"}),
        (None, {"retry-after": str(ABSURD_MS // 1000 + 1)}),
        ({"retry_after": -3}, {}),
        ({"retry_after": "never"}, {}),
        ({"resets_in_seconds": 10**12}, {}),
        ("try again in 400 days", {}),
    ],
)
def test_what_cannot_be_a_wait_is_recorded_and_ignored(text: object, headers: dict[str, str]) -> None:
    found = waits(text, headers)
    assert found
    assert all(one.ignored for one in found)
    assert wait(text, headers) is None


@pytest.mark.rule("OURS-4")
def test_a_wait_of_31_days_is_still_one() -> None:
    assert wait(None, {"retry-after": str(ABSURD_MS // 1000)}) == ABSURD_MS


@pytest.mark.rule("OURS-4")
def test_a_day_without_a_year_is_the_next_one() -> None:
    december_ms = 1_798_675_200_000  # 2026-12-31T00:00Z
    assert wait("resets Jan 2 at 1am (UTC)", now_ms=december_ms) == 176_400_000
    assert wait("resets Dec 30, 11pm (UTC)", now_ms=december_ms) == 0, "a moment ago"
    assert wait("resets Jan 2 at 1am (UTC)", now_ms=0) is None


def test_dates_need_a_clock() -> None:
    body = {"error": {"resets_at": 1772000060}}
    assert wait(body, now_ms=0) is None
    assert wait(body, {"Date": "Wed, 25 Feb 2026 06:13:50 GMT"}, now_ms=0) == 30_000
    assert wait("Your limit will reset at 2026-02-25 15:13:20", provider="zai") == 3_600_000, "told in UTC+8"


@pytest.mark.rule("OURS-4")
@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("6m0s", 360_000),
        ("1.5", 1_500),
        ("320ms", 320),
        ("PT1M", 60_000),
        ("2 hours", 7_200_000),
        ("soon", None),
    ],
)
def test_spans(text: str, ms: float | None) -> None:
    assert duration_ms(text) == ms


@pytest.mark.rule("TIME-3")
def test_an_sdk_may_not_sleep_beyond_its_cap() -> None:
    cap = sdk_cap_ms(None)
    assert cap == 60_000
    for status in (408, 409, 429, 500, 503, 529):
        assert surfaces_at_once(status, 60_001, cap), status
        assert not surfaces_at_once(status, 60_000, cap), status
    for status in (None, 400, 401, 404):
        assert not surfaces_at_once(status, 3_600_000, cap), status
    assert surfaces_at_once(429, None, cap), "a throttle without a wait would be guessed at"
    assert not surfaces_at_once(500, None, cap)


@pytest.mark.rule("TIME-6")
@pytest.mark.parametrize(
    ("setting", "cap"),
    [
        (None, 60_000),
        ("", 60_000),
        ("90", 90_000),
        (" 1.5 ", 1_500),
        ("-5", 60_000),
        ("much", 60_000),
        ("1e9", 60_000),
        ("0", None),
        ("false", None),
        ("OFF", None),
        ("none", None),
        ("disabled", None),
    ],
)
def test_the_cap_is_tuned_or_switched_off(setting: str | None, cap: int | None) -> None:
    assert sdk_cap_ms(setting) == cap
    if cap is None:
        assert not surfaces_at_once(429, 10**9, cap)
