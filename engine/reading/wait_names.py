"""Names of the headers that state waits, as far as they may be kept.

A provider makes up the names of its buckets, and could put a key there as well as anywhere else. So a name is
kept only when it is put together of the words that such names are known to be made of.
"""

_LINES = """
x ms ratelimit rate limit limits reset resets retry after remaining used at in by time date timestamp epoch
window anthropic openai azure groq codex claude opus sonnet haiku unified primary secondary fallback overage
additional request requests token tokens input output prompt completion cached cache read write image images
audio batch long context fast priority project org organization user account model team workspace usage quota
credits cost milliseconds seconds second minutes minute min hours hour days day daily week weekly month monthly
global 1s 10s 1m 5m 1h 5h 1d 7d 30d rps rpm rph rpd tpm tpd
"""
_WORDS = frozenset(_LINES.split())


def kept_name(name: str) -> str:
    """The name of a header as it may be kept beside its wait; "" if it holds any word that is not known."""
    return name if _WORDS.issuperset(name.split("-")) else ""
