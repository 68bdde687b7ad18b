"""What a host knows to be secret is kept in no spelling, in no field (invariant 12)."""

import base64
import json
from typing import Any
from urllib.parse import quote

import pytest

from standby.engine.reading.extract import Extracted, Reply, extract
from standby.engine.reading.known_secrets import MASK, KnownSecrets
from standby.engine.reading.masking import mask
from standby.engine.texts.notices import reason_text
from standby.events.vocabulary import Failure
from standby.hosts.reports import Failed

pytestmark = pytest.mark.invariant(12)
SECRET = "Place/Holder-Key_12+xyz"
WORD = "PlaceholderPasswordValue"


def small(text: str) -> str:
    """Only the letters and digits, small: a secret that is found in here can be read."""
    return "".join(filter(str.isalnum, text.lower()))


def kept(extracted: Extracted) -> str:
    return small(repr(extracted.evidence) + extracted.text)


def basic(user: str) -> str:
    return base64.b64encode(f"{user}:{SECRET}".encode()).decode()


SPELLINGS = {
    "as it is": SECRET,
    "capitals": SECRET.upper(),
    "JSON slash": SECRET.replace("/", "\\/"),
    "JSON escapes": SECRET.replace("-", "\\u002d").replace("+", "\\u002B"),
    "twice escaped": SECRET.replace("-", "\\\\u002d"),
    "all escaped": "".join(f"\\u{ord(one):04x}" for one in SECRET),
    "percent": quote(SECRET, safe=""),
    "percent twice": quote(quote(SECRET, safe=""), safe=""),
    "HTML": SECRET.replace("+", "&#43;").replace("-", "&#x2d;"),
    "two lines": f"{SECRET[:8]}\n    {SECRET[8:]}",
    "escaped line end": f"{SECRET[:8]}\\n{SECRET[8:]}",
    "UTF-16": SECRET.encode("utf-16-le").decode(),
    "base64": base64.b64encode(SECRET.encode()).decode(),
    "base64 unpadded": base64.b64encode(SECRET.encode()).decode().rstrip("="),
    "base64 urlsafe": base64.urlsafe_b64encode(SECRET.encode()).decode(),
    "base64 in lines": base64.encodebytes((SECRET * 4).encode()).decode(),
    "basic": basic("u"),
    "basic 2": basic("us"),
    "basic 3": basic("use"),
    "hex": SECRET.encode().hex(),
}


@pytest.mark.parametrize("spelt", SPELLINGS.values(), ids=SPELLINGS)
@pytest.mark.parametrize("frame", ["no such key {} here", '{{"error":{{"message":"bad {} key"}}}}', "{}"])
def test_a_known_secret_is_masked_in_every_spelling(spelt: str, frame: str) -> None:
    text = extract(Reply(status=401, body=frame.format(spelt)), secrets=(SECRET,)).text
    assert MASK in text
    left = frame.format("").split()
    assert small(text.replace(MASK, "")) == small("".join(left)), "nothing of it is left, and nothing else gone"


def test_a_secret_of_another_script_is_masked_percent_encoded() -> None:
    secret = "Schlüssel-ÄÖ-wort"
    for spelt in (secret, secret.upper(), quote(secret), json.dumps(secret)):
        assert KnownSecrets((secret,)).hide(f"<{spelt.strip(chr(34))}>") == f"<{MASK}>"


def test_passphrases_are_masked_as_a_form_spells_them() -> None:
    assert mask("key=tea+time+place", ("tea time place",)) == f"key={MASK}"
    assert "time" not in mask("bad tea\n time  PLACE", ("tea time place",))


def test_short_secrets_are_masked_and_words_stay() -> None:
    assert mask("ABCD is no key, a b c d", ("abcd",)) == f"{MASK} is no key, a b c d"
    assert mask("there is none", ("is",)) == "there is none"


@pytest.mark.parametrize("shape", [str.lower, str.upper, str.title], ids=["lower", "upper", "title"])
@pytest.mark.parametrize(
    "place", ["open", "class", "code", "type", "inner", "header", "event", "given", "param"]
)
def test_no_field_holds_a_known_secret_in_another_case(place: str, shape: Any) -> None:
    word = shape(WORD + ("Error" if place == "class" else ""))
    body: object = {"error": {"message": "m"}}
    more: dict[str, Any] = {}
    if place == "open":
        body = f"{word}: is not valid"
    elif place == "class":
        body = f"oops, {word}: x"
    elif place in ("code", "type", "param"):
        body = {"error": {"message": "m", place: word}}
    elif place == "inner":
        body = {
            "error": {"code": "a_code", "type": "a_type", "inner": {"code": word, "type": f"{word}_denied"}}
        }
    elif place == "header":
        more["headers"] = {"X-Amzn-ErrorType": f"{word}:x"}
    elif place == "event":
        body = f'event: error\ndata: {{"error":{{"type":"{word}","message":"x"}}}}\n\n'
    else:
        more = {"code": word, "error_type": word, "param": word}
    assert WORD.lower() not in kept(extract(Reply(status=401, body=body, **more), secrets=(WORD,)))


def test_a_part_of_a_secret_is_no_token() -> None:
    body = {"error": {"code": "a_code", "inner": {"code": SECRET[:12]}, "other": {"code": "upstream_down"}}}
    tokens = extract(Reply(body=body), secrets=(SECRET,)).evidence.tokens
    assert tokens == ("upstreamdown",)


@pytest.mark.parametrize("before", range(60, 100))
def test_a_code_is_masked_before_it_is_cut(before: int) -> None:
    secret = "correct horse.battery-staple pony"
    evidence = extract(Reply(code="z" * before + " " + secret), secrets=(secret,)).evidence
    assert "correct" not in evidence.code
    assert len(evidence.code) <= 100


@pytest.mark.parametrize("cut", range(2500, 2600, 7))
@pytest.mark.parametrize("spelt", [SECRET, SPELLINGS["all escaped"]], ids=["plain", "escaped"])
def test_copies_of_a_secret_do_not_draw_the_cut_one_in(cut: int, spelt: str) -> None:
    body = f"{spelt} " * (2048 // len(spelt))
    body += "y " * ((cut - len(body)) // 2) + spelt + " tail" * 400
    text = extract(Reply(body=body), secrets=(SECRET,)).text
    assert set(small(text.replace(MASK, "").rstrip(MASK))) <= set("ytail")


@pytest.mark.parametrize("cut", range(2500, 2600, 7))
def test_keys_of_others_do_not_draw_the_cut_one_in_either(cut: int) -> None:
    key = "0123456789abcdef0123456789abcdef0123456789abcdef"
    body = f"{key} " * 30
    body += "y " * ((cut - len(body)) // 2) + key + " z" * 900
    assert "0123" not in extract(Reply(body=body)).text


NAMES = [
    ("x-ratelimit-reset-{}", "x-ratelimit-remaining-{}", "3s", "0"),
    ("anthropic-ratelimit-{}-reset", "anthropic-ratelimit-{}-remaining", "3s", "0"),
    ("anthropic-ratelimit-unified-{}-reset", "anthropic-ratelimit-unified-{}-status", "3s", "rejected"),
    ("x-codex-{}-reset-after-seconds", "x-codex-{}-used-percent", "3", "100"),
]


@pytest.mark.parametrize(("reset", "left", "wait", "none"), NAMES)
@pytest.mark.parametrize("quoted", [False, True])
def test_the_name_of_a_bucket_is_kept_only_if_it_is_known(
    reset: str, left: str, wait: str, none: str, quoted: bool
) -> None:
    def waits(bucket: str) -> list[tuple[int, str]]:
        headers = {reset.format(bucket): wait, left.format(bucket): none}
        reply = Reply(status=429, body={"headers": headers}) if quoted else Reply(status=429, headers=headers)
        return [(one.ms, one.name) for one in extract(reply).evidence.waits]

    assert waits(WORD) == [(3_000, "")]
    assert waits("tokens") == [(3_000, reset.format("tokens"))]


def test_a_notice_masks_what_only_unescaping_shows() -> None:
    key = "sk-test-PLACEHOLDER1234567890"
    text = json.dumps({"error": {"message": f"key {key}: 429 too many requests"}}).replace("-", "\\u002d")
    assert reason_text(Failure.RATE_LIMIT, text, 429) == f"key {MASK}: 429 too many requests"
    assert "PLACEHOLDER" not in extract(Reply(body=text)).text, "nor is it kept"


def test_escapes_that_are_needed_stay() -> None:
    text = json.dumps({"message": 'a "b" \\ \x7f ü', "more": "x"})
    assert mask(text) == text


def test_no_repr_shows_what_a_reply_quotes() -> None:
    import io

    from rich.console import Console
    from rich.pretty import pprint

    reply = Reply(
        provider="openai",
        status=401,
        body=SECRET,
        message=SECRET,
        headers={"authorization": SECRET},
        code="sk-test-PLACEHOLDER",
    )
    failed = Failed(reply=reply, secrets=(SECRET,), delivered=True)
    out = io.StringIO()
    pprint([reply, failed], console=Console(file=out, width=400))
    for shown in (repr(reply), str(failed), f"{[failed]}", out.getvalue()):
        assert SECRET not in shown
        assert "PLACEHOLDER" not in shown
        assert "status=401" in shown
    assert "delivered=True" in repr(failed)
