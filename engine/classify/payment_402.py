"""What a 402 means in ruleset 2026-10: an empty wallet, or a window of usage that opens again (CLS-13).

Not every 402 asks for money. A used-up window, a limit on an organization's or workspace's spending, a throttle
in other words: these pass by themselves and are rate limits. The rows go from the surest wording to none.
"""

from standby.engine.classify.table_rows import row
from standby.events.vocabulary import Failure

F = Failure

PAYMENT_402 = (
    row(
        "402.unrelated",
        None,
        status=402,
        says="status.leading",
        unless="money402",
        rule="CLS-29",
        seen="a count of 402 things",
    ),
    row("402.rolling-window", F.RATE_LIMIT, status=402, says=("window402", "refresh402"), rule="CLS-13"),
    row("402.owner", F.BILLING, status=402, says="owner402", rule="CLS-13"),
    row("402.plan-limit", F.BILLING, status=402, says=("plan402", "limit402.word"), rule="CLS-13"),
    row("402.maximum", F.BILLING, status=402, says="limit402.maximum", rule="CLS-13"),
    row(
        "402.throttle",
        F.RATE_LIMIT,
        status=402,
        says="rate.limit|rate.too-many|rate.throttle|rate.cooldown|rate.quota-exceed|rate.resource|rate.usage-limit|rate.tpm|rate.concurrency",
        rule="CLS-13",
    ),
    row("402.retry-usage", F.RATE_LIMIT, status=402, says=("again402", "usage402"), rule="CLS-13"),
    row("402.period-usage", F.RATE_LIMIT, status=402, says=("period402", "spend402"), rule="CLS-13"),
    row(
        "402.period-reset",
        F.RATE_LIMIT,
        status=402,
        says=("period402", "reset402", "limit402.word"),
        rule="CLS-13",
    ),
    row(
        "402.group-limit",
        F.RATE_LIMIT,
        status=402,
        says=("group402", "over402", "limit402.word"),
        rule="CLS-13",
    ),
    row("402.payment", F.BILLING, status=402, rule="CLS-13"),
)
