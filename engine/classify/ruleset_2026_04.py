"""Decision rows of ruleset 2026-04, in order.

The earlier document's reading: a numeric status decides almost alone (429 is always a throttle, 5xx a timeout),
prose decides where no status field exists, throttles come before wallets, and a status at the head of a text
counts only for overload and the transient ones. What comes from OURS rows is added where none of these decide.
"""

from standby.engine.classify.codes import TOKENS
from standby.engine.classify.table_rows import TableRow, row
from standby.events.vocabulary import Failure, Origin

F = Failure

RATE = (
    "rate.limit|rate.too-many|rate.throttle|rate.cooldown|rate.quota-exceed|rate.resource|rate.usage-limit"
    "|rate.tpm|number.429"
)
TRANSIENT = (408, 499, 500, 502, 503, 504, 521, 522, 523, 524)
HTML_STATUSES = (408, 499, *range(500, 600))

STATUSES = (
    row("04.page", F.TIMEOUT, says="shape.html", status=HTML_STATUSES),
    row("04.402-window", F.RATE_LIMIT, status=402, says=("window402", "refresh402"), rule="CLS-13"),
    row("04.402-owner", F.BILLING, status=402, says="owner402", rule="CLS-13"),
    row("04.402-plan-limit", F.BILLING, status=402, says=("plan402", "limit402.word"), rule="CLS-13"),
    row("04.402-maximum", F.BILLING, status=402, says="limit402.maximum", rule="CLS-13"),
    row(
        "04.402-throttle",
        F.RATE_LIMIT,
        status=402,
        says="rate.limit|rate.too-many|rate.throttle|rate.cooldown|rate.quota-exceed|rate.resource|rate.usage-limit|rate.tpm",
        rule="CLS-13",
    ),
    row("04.402-retry-usage", F.RATE_LIMIT, status=402, says=("again402", "usage402"), rule="CLS-13"),
    row("04.402-period-usage", F.RATE_LIMIT, status=402, says=("period402", "spend402"), rule="CLS-13"),
    row(
        "04.402-period-reset",
        F.RATE_LIMIT,
        status=402,
        says=("period402", "reset402", "limit402.word"),
        rule="CLS-13",
    ),
    row(
        "04.402-group-limit",
        F.RATE_LIMIT,
        status=402,
        says=("group402", "over402", "limit402.word"),
        rule="CLS-13",
    ),
    row("04.402-payment", F.BILLING, status=402, rule="CLS-13"),
    row("04.429", F.RATE_LIMIT, status=429, soft=False, rule="CLS-1"),
    row("04.40x-permanent", F.AUTH_PERMANENT, status=(401, 403), soft=False, says="permanent"),
    row("04.openrouter-key-limit", F.BILLING, providers="openrouter", says="key-limit"),
    row("04.40x-billing", F.BILLING, status=(401, 403), soft=False, says="billing|plansbilling", rule="CLS-12"),
    row("04.40x-auth", F.AUTH, status=(401, 403), soft=False),
    row(
        "04.timeout-shaped-throttle",
        F.RATE_LIMIT,
        status=(408, 499, 504),
        soft=False,
        says=RATE,
        unless="number.429",
        rule="CLS-26",
    ),
    row("04.408", F.TIMEOUT, status=408, soft=False),
    row("04.499-overloaded", F.OVERLOADED, status=(499, 503), soft=False, says="overloaded", rule="CLS-14"),
    row("04.5xx", F.TIMEOUT, status=(499, 500, 502, 503, 504), soft=False),
    row("04.529", F.OVERLOADED, status=529, soft=False),
)

PROSE = (
    row("04.image", None, says="image", not_status=(400, 422)),
    row("04.session", F.SESSION_EXPIRED, says="session", not_status=(429,)),
    row("04.model-code", F.MODEL_NOT_FOUND, tokens=TOKENS["model"], flags="missing_model"),
    row(
        "04.model",
        F.MODEL_NOT_FOUND,
        says="model.unknown|model.retired|model.not-servable",
        unless="model-reference",
        flags="missing_model",
    ),
    row("04.model-404-text", F.MODEL_NOT_FOUND, says=("not-found", "status.leading"), status=404),
    row("04.overflow", F.CONTEXT_OVERFLOW, says="overflow", unless="tpm", rule="CLS-17"),
    row("04.overflow-code", F.CONTEXT_OVERFLOW, tokens=TOKENS["overflow"], unless="tpm", rule="CLS-17"),
    row("04.404-billing", F.BILLING, status=404, soft=False, says="billing|plansbilling"),
    row("04.404-permanent", F.AUTH_PERMANENT, status=404, soft=False, says="permanent"),
    row("04.404-auth", F.AUTH, status=404, soft=False, says="auth"),
    row("04.404", F.MODEL_NOT_FOUND, status=404, soft=False),
    row("04.410-billing", F.BILLING, status=410, soft=False, says="billing"),
    row("04.410-permanent", F.AUTH_PERMANENT, status=410, soft=False, says="permanent"),
    row("04.410-auth", F.AUTH, status=410, soft=False, says="auth"),
    row("04.410", F.TIMEOUT, status=410, soft=False),
    row("04.periodic-billing", F.BILLING, says=("periodic", "billing|plansbilling"), rule="CLS-12"),
    row("04.periodic", F.RATE_LIMIT, says="periodic", flags="long_window", rule="CLS-1"),
    row("04.rate-code", F.RATE_LIMIT, tokens=TOKENS["rate"], rule="CLS-1"),
    row("04.rate", F.RATE_LIMIT, says=RATE, rule="CLS-1"),
    row("04.overloaded", F.OVERLOADED, says="overloaded", rule="CLS-14"),
    row("04.overloaded-code", F.OVERLOADED, tokens=TOKENS["overloaded"], rule="CLS-14"),
    row("04.unavailable-capacity", F.OVERLOADED, says=("unavailable", "overloaded"), rule="CLS-14"),
    row("04.529-text", F.OVERLOADED, status=529),
    row("04.transient-text", F.TIMEOUT, status=TRANSIENT, soft=True),
    row("04.billing-code", F.BILLING, tokens=TOKENS["billing"]),
    row(
        "04.billing",
        F.BILLING,
        says="billing|plansbilling",
        unless="shape.long-prose shape.headings",
        rule="CLS-12",
    ),
    row("04.permanent-code", F.AUTH_PERMANENT, tokens=TOKENS["permanent"]),
    row("04.permanent", F.AUTH_PERMANENT, says="permanent"),
    row("04.stream", F.TIMEOUT, says="timeout.stream|timeout.websocket"),
    row("04.auth-code", F.AUTH, tokens=TOKENS["auth"]),
    row("04.auth", F.AUTH, says="auth"),
    row("04.unknown-anthropic", F.TIMEOUT, providers="anthropic", says="unknown.contains", rule="CLS-27"),
    row("04.openrouter-upstream", F.TIMEOUT, providers="openrouter", says="upstream.openrouter", rule="CLS-10"),
    row("04.unknown-run", None, says="unknown.run", rule="CLS-11"),
    row("04.status-line", None, says="server.status-line", unless="server.upstream server.gateway"),
    row(
        "04.server",
        F.TIMEOUT,
        says="server.processing|server.internal|server.gateway|server.upstream|server.reset|unavailable",
        tokens="",
        rule="CLS-9",
    ),
    row(
        "04.server-code",
        F.TIMEOUT,
        tokens="internalerror servererror internalservererror upstreamerror serviceunavailable",
    ),
    row(
        "04.api-error",
        F.TIMEOUT,
        tokens="apierror",
        says="server.internal|server.unknown|server.gateway|server.upstream|server.transient|server.code",
        unless="billing auth",
        rule="CLS-9",
    ),
    row("04.format", F.FORMAT, says="format.pattern|format.tool-id|format.invalid", rule="CLS-2"),
    row("04.finish", F.TIMEOUT, says="finish", rule="CLS-5"),
    row("04.timeout", F.TIMEOUT, says="timeout"),
    row("04.timeout-code", F.TIMEOUT, tokens=TOKENS["network"]),
    row(
        "04.concurrency",
        F.RATE_LIMIT,
        says="rate.concurrency|workers-ai|rate.quota|rate.window|rate.zh",
        rule="CLS-1",
    ),
    row(
        "04.not-ready",
        F.OVERLOADED,
        tokens="modelnotreadyexception",
        says="overloaded.not-ready",
        rule="CLS-14",
    ),
    row("04.zh-overloaded", F.OVERLOADED, says="overloaded.zh", rule="CLS-14"),
    row("04.zh-server", F.TIMEOUT, says="server.zh"),
    row("04.dashscope-quota", F.RATE_LIMIT, providers="dashscope", tokens="insufficientquota", rule="OURS-3"),
    row("04.wallet-zai", F.BILLING, providers="zai", tokens="1311"),
    row("04.auth-zai", F.AUTH, providers="zai", tokens="1113"),
    row("04.type-rate", F.RATE_LIMIT, tokens="ratelimiterror resourceexhausted", rule="CLS-1"),
    row("04.type-auth", F.AUTH, tokens=TOKENS["vague-auth"]),
    row("04.format-code", F.FORMAT, tokens=TOKENS["format"], statusless=True, rule="CLS-2"),
    row("04.type-model", F.MODEL_NOT_FOUND, tokens=TOKENS["vague-model"]),
    row("04.400", F.FORMAT, status=(400, 422), soft=False, rule="CLS-2"),
)

ABORTS = (
    row(
        "04.abort-timeout",
        F.TIMEOUT,
        origin=Origin.ABORT,
        says="timeout.words|timeout.happened|timeout.request-aborted",
    ),
    row("04.abort", None, origin=Origin.ABORT, flags="aborted", rule="ADV-2"),
)

ROWS: tuple[TableRow, ...] = (*ABORTS, *STATUSES, *PROSE)
