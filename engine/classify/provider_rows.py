"""Rows that belong to one provider: its own numbers, and words that mean something else there (CLS-31, OURS-3).

The numbers are from the providers' error documentation. A provider that reuses another's words gets a row here
rather than a change to the general ones.
"""

from standby.engine.classify.table_rows import row
from standby.events.vocabulary import Failure

F = Failure

PROVIDERS = (
    row("openrouter.key-limit", F.BILLING, providers="openrouter", says="key-limit", seen="OpenRouter 403"),
    row(
        "dashscope.quota",
        F.RATE_LIMIT,
        providers="dashscope",
        tokens="insufficientquota exceededcurrentquotaerror",
        rule="OURS-3",
        seen="DashScope 429: allocated TPM used up",
    ),
    row(
        "together.credit-limit",
        F.RATE_LIMIT,
        providers="together",
        tokens="creditlimit",
        says="rate.limit",
        rule="OURS-3",
        seen="Together 429",
    ),
    row(
        "zai.key", F.AUTH, providers="zai", tokens="1000 1001 1002 1003 1004 1220", seen="docs.z.ai error codes"
    ),
    row("zai.account", F.AUTH_PERMANENT, providers="zai", tokens="1110 1111 1112 1121", rule="CLS-19"),
    row(
        "zai.endpoint-1113",
        F.AUTH,
        says="auth.token",
        tokens="1113",
        unless="billing",
        seen="code 1113 beside credential wording",
    ),
    row("zai.wallet", F.BILLING, providers="zai", tokens="1113 1309 1311", rule="OURS-3"),
    row("zai.model", F.MODEL_NOT_FOUND, providers="zai", tokens="1211 1221 1222", flags="missing_model"),
    row("zai.throttle", F.RATE_LIMIT, providers="zai", tokens="1302 1303 1313 1120"),
    row(
        "zai.window",
        F.RATE_LIMIT,
        providers="zai",
        tokens="1304 1308 1310 1316 1317 1318 1319 1320 1321",
        flags="long_window",
    ),
    row("zai.busy", F.OVERLOADED, providers="zai", tokens="1305 1312", rule="CLS-14"),
    row("zai.overflow", F.CONTEXT_OVERFLOW, providers="zai", tokens="1261", rule="CLS-17"),
    row("zai.parameters", F.FORMAT, providers="zai", tokens="1210 1212 1213 1214 1215"),
    row("zai.network", F.TIMEOUT, providers="zai", tokens="1234 1230"),
    row("minimax.throttle", F.RATE_LIMIT, providers="minimax", tokens="1002 1039 1041 2045"),
    row("minimax.window", F.RATE_LIMIT, providers="minimax", tokens="2056 1028 1030", flags="long_window"),
    row("minimax.key", F.AUTH, providers="minimax", tokens="1004 2049"),
    row("minimax.wallet", F.BILLING, providers="minimax", tokens="1008 2061"),
    row("minimax.timeout", F.TIMEOUT, providers="minimax", tokens="1001"),
    row("minimax.server", F.SERVER_ERROR, providers="minimax", tokens="1000 1013 1024 1033"),
    row("minimax.parameters", F.FORMAT, providers="minimax", tokens="2013 1042"),
    row("baidu.throttle", F.RATE_LIMIT, providers="baidu", tokens="18 336501 336502 336503 336505"),
    row("baidu.wallet", F.BILLING, providers="baidu", tokens="17 19 336007"),
    row("baidu.key", F.AUTH, providers="baidu", tokens="110 111 13 14 100"),
    row(
        "cloudflare.window",
        F.RATE_LIMIT,
        providers="cloudflare",
        tokens="3036 4006",
        flags="long_window",
        seen="Workers AI errors",
    ),
    row("cloudflare.capacity", F.OVERLOADED, providers="cloudflare", tokens="3040", rule="CLS-14"),
    row(
        "cloudflare.model",
        F.MODEL_NOT_FOUND,
        providers="cloudflare",
        tokens="5007 7000 5018",
        flags="missing_model",
    ),
    row("cloudflare.size", F.CONTEXT_OVERFLOW, providers="cloudflare", tokens="3006 5021", rule="CLS-17"),
    row("cloudflare.timeout", F.TIMEOUT, providers="cloudflare", tokens="3007 3046"),
    row("cloudflare.key", F.AUTH, providers="cloudflare", tokens="10000 9109 5016 3003 2003 2009"),
    row("siliconflow.wallet", F.BILLING, providers="siliconflow", tokens="30001 30011"),
    row("siliconflow.model", F.MODEL_NOT_FOUND, providers="siliconflow", tokens="20012", flags="missing_model"),
    row("siliconflow.busy", F.OVERLOADED, providers="siliconflow", tokens="50505 50603", rule="CLS-14"),
    row("mistral.throttle", F.RATE_LIMIT, providers="mistral", tokens="1300", says="rate"),
    row(
        "mistral.capacity",
        F.OVERLOADED,
        providers="mistral",
        tokens="3505",
        rule="CLS-14",
        seen="Mistral service_tier_capacity_exceeded",
    ),
    row("codex.not-included", F.BILLING, tokens="usagenotincluded", seen="Codex plan without the model"),
    row(
        "kimi.terminated",
        F.AUTH_PERMANENT,
        providers="kimi",
        tokens="accessterminatederror",
        says="permanent",
        rule="CLS-19",
    ),
    row("kimi.engine-overloaded", F.OVERLOADED, providers="kimi", says="overloaded.word", rule="CLS-14"),
    row(
        "google.plan-words",
        F.RATE_LIMIT,
        tokens="resourceexhausted",
        says="plansbilling",
        unless="billing",
        rule="CLS-1",
        seen="Gemini says 'check your plan and billing' on every 429",
    ),
    row(
        "google.plan-words-429",
        F.RATE_LIMIT,
        providers="google dashscope",
        says="plansbilling",
        unless="billing insufficientquota",
        rule="OURS-3",
    ),
    row("login.claude", F.AUTH, providers="claude-cli", says="login|session|auth", seen="Claude CLI"),
    # "Too many tokens per day" is a window; the same words without the day are the throttle of a minute.
    row(
        "bedrock.quota-day",
        F.RATE_LIMIT,
        providers="bedrock",
        says=("rate.too-many", "long"),
        unless="short",
        flags="long_window",
        rule="OURS-3",
    ),
    row("bedrock.throttle", F.RATE_LIMIT, providers="bedrock", says="rate.too-many", rule="OURS-3"),
    # The day's allowance of free models: the other models of the same account go on answering.
    row(
        "openrouter.free-models",
        F.RATE_LIMIT,
        providers="openrouter",
        says="free-models",
        unless="billing.insufficient billing.balance-low",
        rule="CLS-1",
    ),
    # An explicit restriction of one model (CLS-21): other credentials are tried (FLOW-8), other models of this
    # one stay usable, the chain goes on. Also where the code says that there is no such model.
    row(
        "openai.unverified",
        F.MODEL_NOT_FOUND,
        says="access.unverified",
        status=(400, 403, 404),
        rule="CLS-21",
        seen="OpenAI: organization must be verified",
    ),
    row("workers.quota", F.RATE_LIMIT, says="workers-ai", rule="CLS-1", seen="Workers AI quota limit"),
    row("model.gate-not-ready", F.OVERLOADED, tokens="modelnotreadyexception", rule="CLS-14", seen="Bedrock"),
)
