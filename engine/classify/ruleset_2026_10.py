"""Decision rows of ruleset 2026-10, in order.

The order is the theory. First what stands apart from statuses: aborts, refusals, the 402 split, rows that
belong to one provider. Then telling codes, which beat prose. Then prose, from the specific to the general:
session, model, size, wallet, usage window, throttle, overload, credential. Between them stand the statuses that
outrank what comes after: a 429 is a throttle before it is anything vaguer, a 404 a missing model, a 401 or 403
a credential matter. The vague codes follow, and the status map (CLS-7) comes last: it decides only when
nothing more specific was said (OURS-2).
"""

from standby.engine.classify.codes import TOKENS
from standby.engine.classify.payment_402 import PAYMENT_402
from standby.engine.classify.provider_rows import PROVIDERS
from standby.engine.classify.table_rows import TableRow, row
from standby.events.vocabulary import Failure, Origin, RefusalKind

F = Failure
FIVES = tuple(range(500, 600))
TIMING = (408, 499, 504, 522, 524)
SERVER_STATUSES = tuple(s for s in FIVES if s not in (504, 522, 524, 529))
BAD = (400, 422)
NO_MODEL_PROSE = (401, 402, 403, 408, 429)

ABORTS = (
    row(
        "abort.timeout-shaped",
        F.TIMEOUT,
        origin=Origin.ABORT,
        says="timeout.words|timeout.happened|timeout.request-aborted|timeout.zh",
    ),
    row("abort.explicit", None, origin=Origin.ABORT, flags="aborted", rule="ADV-2"),
)

REFUSALS = (
    row(
        "refusal.cyber",
        F.REFUSAL,
        tokens=TOKENS["cyber"],
        kind=RefusalKind.CYBER_POLICY,
        rule="CYB-5",
        seen="OpenAI Responses, Codex",
    ),
    row(
        "refusal.misalignment",
        F.REFUSAL,
        tokens=TOKENS["misalignment"],
        kind=RefusalKind.MISALIGNMENT,
        seen="OpenAI Codex",
    ),
    row("refusal.code", F.REFUSAL, tokens=TOKENS["refusal"], not_status=(402,)),
    row("refusal.invalid-prompt", F.REFUSAL, tokens="invalidprompt", says="refusal", seen="OpenAI o-series"),
    row("zai.refusal", F.REFUSAL, providers="zai", tokens="1301", seen="docs.z.ai error codes"),
    row("minimax.refusal", F.REFUSAL, providers="minimax", tokens="1026 1027", seen="MiniMax error codes"),
    row("baidu.refusal", F.REFUSAL, providers="baidu", tokens="336104 18002", says="refusal"),
    row(
        "xai.will-not",
        F.UNCLASSIFIED,
        providers="xai",
        status=403,
        says="refusal.xai-words",
        unless="permanent auth.key auth.token auth.words billing",
        seen="xAI 403 without any credential wording",
    ),
    row("refusal.prose", F.REFUSAL, says="refusal.policy|refusal.zh", not_status=(402, 429)),
)

CODES = (
    row(
        "format.unknown-parameter",
        F.FORMAT,
        tokens="unknownparameter",
        not_status=(401, 402, 403, 404, 408, 429, 529),
        rule="CLS-3",
    ),
    row("code.host-format", F.FORMAT, tokens="format", not_status=(401, 402, 403, 429, 529), rule="CLS-3"),
    row("permanent.code", F.AUTH_PERMANENT, tokens=TOKENS["permanent"], not_status=(429,), rule="CLS-19"),
    row(
        "size.ceiling",
        F.REQUEST_SIZE_CEILING,
        says=("shape.asks-more-than-limit", "tpm"),
        flags="size_ceiling",
        rule="CLS-18",
        seen="Groq, OpenAI: more tokens in one request than a minute allows",
    ),
    row(
        "model.code-access",
        F.MODEL_NOT_FOUND,
        tokens=TOKENS["model"],
        says="access",
        status=(401, 403),
        rule="CLS-21",
    ),
    row(
        "model.code",
        F.MODEL_NOT_FOUND,
        tokens=TOKENS["model"],
        unless="access.policy",
        not_status=(402, 429),
        flags="missing_model",
        rule="CLS-21",
    ),
    row(
        "overflow.code",
        F.CONTEXT_OVERFLOW,
        tokens=TOKENS["overflow"],
        unless="tpm",
        not_status=(401, 402, 403, 429),
        rule="CLS-17",
    ),
    row("billing.code", F.BILLING, tokens=TOKENS["billing"]),
    row("window.code", F.RATE_LIMIT, tokens=TOKENS["window"], flags="long_window", rule="CLS-1"),
    row(
        "overloaded.code",
        F.OVERLOADED,
        tokens=TOKENS["overloaded"],
        unless="overflow",
        not_status=(401, 402, 403, 404),
        rule="CLS-14",
    ),
    row(
        "rate.code",
        F.RATE_LIMIT,
        tokens=TOKENS["rate"],
        unless="billing overloaded.capacity",
        not_status=(401, 402, 403, 404, 529),
        rule="CLS-1",
    ),
    row("auth.code", F.AUTH, tokens=TOKENS["auth"], unless="permanent billing model", not_status=(402, 429)),
    row(
        "rate.google-code",
        F.RATE_LIMIT,
        tokens="resourceexhausted",
        unless="billing overloaded overflow",
        not_status=(401, 402, 403, 404, 529),
        rule="CLS-1",
    ),
    row(
        "format.code",
        F.FORMAT,
        tokens=TOKENS["format"],
        unless="overflow model rate billing overloaded plansbilling",
        not_status=(401, 402, 403, 404, 408, 429, 529),
        rule="CLS-3",
    ),
    row("tls.code", F.TLS_CERTIFICATE, tokens=TOKENS["tls"], statusless=True),
    row(
        "timeout.network-code",
        F.TIMEOUT,
        tokens=TOKENS["network"],
        unless="tls overloaded rate billing auth overflow finish",
        statusless=True,
    ),
    row("timeout.code", F.TIMEOUT, tokens=TOKENS["timeout"], unless="rate overloaded", not_status=(402, 429)),
)

PROSE = (
    row("image.size-refused", F.FORMAT, says="image", status=(400, 413, 422), rule="CLS-3"),
    row("image.size", None, says="image", not_status=FIVES),
    row("tls.certificate", F.TLS_CERTIFICATE, says="tls", statusless=True),
    row("page.overloaded", F.OVERLOADED, says="shape.html", status=529, rule="CLS-7"),
    row("page.timeout", F.TIMEOUT, says="shape.html", status=TIMING, rule="CLS-7"),
    row("page.server", F.SERVER_ERROR, says="shape.html", status=SERVER_STATUSES, rule="CLS-7"),
    # A gateway asks for a browser: the provider never saw the key, so it is read as other pages of gateways are
    # (server trouble). Any other page under 403 may well be about the key and stays `auth`.
    row("page.challenge", F.SERVER_ERROR, says=("challenge", "shape.html"), status=403),
    row("format.transcript", F.FORMAT, says="format.transcript", rule="CLS-25"),
    row(
        "session.expired",
        F.SESSION_EXPIRED,
        says="session",
        unless="timeout.stream timeout.websocket",
        not_status=(402, 429),
        rule="CLS-25",
    ),
    row(
        "model.retired",
        F.MODEL_NOT_FOUND,
        says="model.retired",
        not_status=NO_MODEL_PROSE,
        flags="missing_model",
        rule="CLS-21",
    ),
    row(
        "model.unknown-or-closed",
        F.MODEL_NOT_FOUND,
        says=("model.unknown|model.not-servable|model.zh", "access.model"),
        not_status=NO_MODEL_PROSE,
        rule="CLS-21",
        seen="does not exist or you do not have access to it",
    ),
    row(
        "model.unknown",
        F.MODEL_NOT_FOUND,
        says="model.unknown|model.not-servable|model.zh",
        unless="access.policy model-reference",
        not_status=NO_MODEL_PROSE,
        flags="missing_model",
        rule="CLS-21",
    ),
    row(
        "format.image-input", F.FORMAT, says="format.image-input", not_status=(401, 402, 403, 429), rule="CLS-3"
    ),
    row(
        "overflow.prose",
        F.CONTEXT_OVERFLOW,
        says="overflow",
        unless="tpm mandatory",
        not_status=(401, 402, 403, 429),
        rule="CLS-17",
    ),
    row("format.order", F.FORMAT, says="format.order", not_status=(401, 402, 403, 429), rule="CLS-3"),
    row(
        "rate.allowance-zh",
        F.RATE_LIMIT,
        says="rate.zh-allowance",
        unless="billing.insufficient plansbilling",
        rule="CLS-1",
    ),
    row("billing.prose", F.BILLING, says="billing", unless="shape.headings", rule="CLS-12"),
    row("billing.plan-words", F.BILLING, says="plansbilling", unless="resourceexhausted", rule="CLS-12"),
    row(
        "rate.periodic",
        F.RATE_LIMIT,
        says="periodic",
        not_status=(401, 403, 404),
        flags="long_window",
        rule="CLS-1",
    ),
    row(
        "rate.prose",
        F.RATE_LIMIT,
        says="rate",
        unless="permanent",
        not_status=(401, 403, 404, 529),
        rule="CLS-1",
    ),
    row(
        "rate.forbidden",
        F.RATE_LIMIT,
        says="rate.limit|rate.too-many|rate.quota-exceed|rate.throttle|rate.usage-limit|periodic",
        unless="permanent auth.key auth.token access",
        status=(401, 403),
        rule="CLS-1",
        seen="GitHub, Google, proxies of subscriptions: throttles and used-up windows under 401 and 403",
    ),
    row(
        "overloaded.prose",
        F.OVERLOADED,
        says="overloaded",
        not_status=(401, 402, 403, 404, 408, 504, 522, 524),
        rule="CLS-14",
    ),
    row(
        "overloaded.unavailable",
        F.OVERLOADED,
        says="unavailable",
        not_status=(401, 402, 403, 404, 408, 429, 504, 522, 524),
        rule="CLS-14",
    ),
    row(
        "likely.overflow",
        F.CONTEXT_OVERFLOW,
        says="likely",
        unless="billing rate tpm",
        not_status=(401, 402, 403, 404, 429),
        rule="CLS-17",
    ),
    row("rate.status", F.RATE_LIMIT, status=429, rule="CLS-1"),
    row("finish.error", F.SERVER_ERROR, says="finish.error", not_status=BAD, rule="CLS-6"),
    row("finish.transport", F.TIMEOUT, says="finish.transport", rule="CLS-32"),
    row(
        "permanent.oauth",
        F.AUTH_PERMANENT,
        says="permanent.oauth|permanent.key|permanent.account|permanent.zh",
        not_status=(408, 529),
        rule="CLS-19",
    ),
    row("auth.status", F.AUTH, status=(401, 403, 407)),
    row("server.type", F.SERVER_ERROR, tokens="servererror upstreamerror", unless="auth", statusless=True),
    row("timeout.websocket", F.TIMEOUT, says="timeout.websocket", not_status=FIVES, rule="CLS-24"),
    row("timeout.stream", F.TIMEOUT, says="timeout.stream", not_status=FIVES),
    row(
        "auth.prose",
        F.AUTH,
        says="auth.key|auth.token|auth.words|auth.place|auth.zh|permanent.organisation",
        not_status=(408, 422, 499, 504, 522, 524, 529),
        unless="server.gateway-proxy rate",
    ),
    row(
        "auth.expired",
        F.AUTH,
        says="auth.expired",
        not_status=(*BAD, 408, 499, 504, 522, 524, 529),
        unless="rate",
    ),
    # "No access to the model" is recorded as `auth` (Bedrock), and FLOW-8 names account-access limits beside
    # auth failures: the next credential may have the access. `model_not_found` is left to those who name the
    # model in a code of their own or close it to an unverified organisation (`access.unverified`).
    row("auth.model-access", F.AUTH, says="access.model", status=(400, 401, 403), rule="CLS-21"),
    row(
        "model.status",
        F.MODEL_NOT_FOUND,
        status=404,
        unless="format.invalid format.parameter format.order",
        rule="CLS-15",
    ),
    row("format.missing-page", F.FORMAT, status=404, rule="CLS-15"),
)

GENERAL = (
    row("timeout.unknown", F.TIMEOUT, says="unknown.exact", statusless=True, rule="CLS-28"),
    row(
        "timeout.openrouter",
        F.TIMEOUT,
        says="upstream.openrouter",
        providers="openrouter",
        not_status=FIVES,
        rule="CLS-10",
    ),
    row("details.none", F.NO_ERROR_DETAILS, says="details.none", rule="CLS-16"),
    row("unknown.run", None, says="unknown.run", statusless=True, rule="CLS-11"),
    row("timeout.gateway-key", F.TIMEOUT, says="server.gateway-proxy"),
    row(
        "timeout.api-error",
        F.TIMEOUT,
        tokens="apierror",
        says="server.internal|server.unknown|server.gateway|server.upstream|server.transient|server.code|server.had-error|server.zh|server.reset",
        unless="billing auth",
        statusless=True,
        rule="CLS-9",
    ),
    row(
        "timeout.api-error-lead",
        F.TIMEOUT,
        tokens="apierror",
        says=(
            "status.leading",
            "server.internal|server.unknown|server.gateway|server.upstream|server.transient|server.code",
        ),
        unless="billing auth",
        rule="CLS-9",
    ),
    row("overloaded.status", F.OVERLOADED, status=(529, 498), rule="CLS-7"),
    row("timeout.status", F.TIMEOUT, status=TIMING, rule="CLS-7"),
    row(
        "format.server-status",
        F.FORMAT,
        says="format",
        status=FIVES,
        unless="server overloaded unavailable",
        rule="CLS-3",
    ),
    row(
        "format.server-type",
        F.FORMAT,
        tokens=TOKENS["vague-format"],
        status=FIVES,
        unless="server overloaded unavailable",
        rule="CLS-3",
    ),
    row("server.status", F.SERVER_ERROR, status=SERVER_STATUSES, rule="CLS-7"),
    row("timeout.gone", F.TIMEOUT, status=410),
    row("auth.type", F.AUTH, tokens=TOKENS["vague-auth"], not_status=(429,)),
    row(
        "rate.type",
        F.RATE_LIMIT,
        tokens="ratelimiterror resourceexhausted ratelimitexception",
        not_status=(404,),
        rule="CLS-1",
    ),
    row("model.type", F.MODEL_NOT_FOUND, tokens=TOKENS["vague-model"], statusless=True),
    row("overloaded.type", F.OVERLOADED, tokens=TOKENS["vague-overloaded"], statusless=True, rule="CLS-14"),
    row(
        "server.status-line",
        None,
        says="server.status-line",
        unless="server.upstream server.gateway",
        statusless=True,
        seen="a proxy's notice",
    ),
    row(
        "timeout.server-words",
        F.TIMEOUT,
        says="server.processing|server.had-error|server.internal|server.code|server.gateway|server.upstream|server.reset|server.zh",
        not_status=BAD,
        unless="format.parameter",
        rule="CLS-9",
    ),
    row("format.prose", F.FORMAT, says="format", statusless=True, rule="CLS-3"),
    row("timeout.prose", F.TIMEOUT, says="timeout", not_status=BAD),
    row(
        "timeout.in-bad-request",
        F.TIMEOUT,
        says="timeout.happened|timeout.connection|timeout.errno|timeout.stream|timeout.websocket|timeout.aborted|timeout.zh",
        status=BAD,
    ),
    row("format.type", F.FORMAT, tokens=TOKENS["vague-format"], statusless=True, rule="CLS-3"),
    row("server.any-type", F.SERVER_ERROR, tokens=TOKENS["vague-server"], statusless=True),
    row("length.output", F.OUTPUT_LIMIT, says="length", statusless=True),
    row("nothing.no-body", F.UNCLASSIFIED, status=BAD, bare=True, rule="CLS-4"),
    row("nothing.placeholder", F.UNCLASSIFIED, status=BAD, says="shape.placeholder|blank", rule="CLS-4"),
    row("empty.code", F.EMPTY_RESPONSE, tokens="emptyresponse", statusless=True, rule="CLS-16"),
    row("format.local", F.FORMAT, tokens="invalidlocalrequest", statusless=True, rule="CLS-25"),
    row("nothing.empty", F.EMPTY_RESPONSE, bare=True, statusless=True, rule="CLS-16"),
    row("format.status", F.FORMAT, status=BAD, rule="CLS-3"),
)

ROWS: tuple[TableRow, ...] = (
    *ABORTS, *PAYMENT_402[:1], *REFUSALS, *PAYMENT_402[1:], *PROVIDERS, *CODES, *PROSE, *GENERAL,
)  # fmt: skip
