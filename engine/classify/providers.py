"""Provider families: which ids mean one provider, since readings are scoped by it (CLS-31, OURS-3).

Two ways of deciding are in use, and a ruleset names its own. `exact` compares whole ids, after known aliases;
`contains` also counts an id that contains the family's name, so that `my-openrouter` is OpenRouter.
"""

from collections.abc import Callable
from functools import lru_cache

_LINES = """
openai: openai-codex codex openai-chat openai-responses chatgpt
codex: openai-codex chatgpt
azure: azure-openai azure-openai-responses azure-ai azure-foundry microsoft-foundry azure-cognitive-services
anthropic: claude claude-api anthropic-api anthropic-vertex
claude-cli: claude-code claude-max anthropic-cli
google: google-vertex vertex vertex-ai vertexai gemini google-gemini google-gemini-cli gemini-cli
google: google-antigravity google-generative-ai google-ai-studio anthropic-vertex google-genai
bedrock: amazon-bedrock aws-bedrock bedrock-mantle amazon-bedrock-mantle aws sagemaker amazon-nova
openrouter:
groq:
mistral: mistralai mistral-ai codestral
deepseek:
xai: x-ai grok
together: togetherai together-ai
fireworks: fireworks-ai
cohere:
dashscope: qwen alibaba aliyun modelstudio bailian qwen-portal qwen-dashscope alibaba-cloud tongyi
moonshot: moonshotai kimi kimi-coding moonshot-ai kimi-code kimi-for-coding
kimi: kimi-coding moonshot moonshotai kimi-code kimi-for-coding
zai: z-ai z.ai zhipu zhipuai bigmodel glm zai-coding glm-coding-plan zai-coding-plan zhipu-coding-plan
minimax: minimax-portal minimaxi minimax-cn
volcengine: ark doubao volcengine-ark volces byteplus
perplexity: pplx
huggingface: hf hugging-face huggingface-inference
cerebras:
sambanova:
ollama: ollama-cloud
vllm:
lmstudio: lm-studio
llamacpp: llama.cpp llama-cpp llama-server
copilot: github-copilot github-models
cloudflare: workers-ai cloudflare-ai-gateway cloudflare-workers-ai workers_ai
litellm: litellm-proxy
venice: venice-ai
nvidia: nvidia-nim nim
siliconflow:
baidu: qianfan ernie wenxin
tencent: hunyuan
stepfun: step
novita:
deepinfra:
replicate:
databricks:
watsonx: ibm-watsonx ibm
poe:
"""


def _table() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for line in _LINES.strip().split("\n"):
        family, _, aliases = line.partition(":")
        for name in (family, *aliases.split()):
            found.setdefault(name, {name}).add(family)
    return {name: frozenset(families) for name, families in found.items()}


FAMILIES = _table()
"""Provider id -> the families that it belongs to."""
EAST_ZONE = frozenset({"zai"})
"""Families whose dates without a zone are meant eight hours ahead of UTC."""


@lru_cache(maxsize=512)
def families_exact(provider: str) -> frozenset[str]:
    """Families of a provider id, by whole ids."""
    name = provider.strip().lower().replace("_", "-").replace(" ", "-")
    return FAMILIES.get(name, frozenset({name} if name else ()))


@lru_cache(maxsize=512)
def families_containing(provider: str) -> frozenset[str]:
    """Families of a provider id, counting ids that contain a family's name."""
    exact = families_exact(provider)
    name = provider.lower()
    return exact | {family for family in FAMILIES if len(family) > 3 and family in name}


FamilyFinder = Callable[[str], frozenset[str]]
