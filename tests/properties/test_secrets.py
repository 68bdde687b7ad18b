"""Invariant 12: no secret, no prompt and no name appears in an event, an error, a notice or a kept text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standby.engine.reading.extract import Reply
from standby.engine.steps import Settled, Wait
from standby.engine.texts.failures import failure_message
from standby.events.errors import StandbyError
from standby.events.memory import MemoryStore
from standby.events.policy import ModelChain, Policy
from standby.hosts.reports import Failed, Succeeded
from standby.hosts.service import Standby, open

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
SECRETS = st.text(LETTERS, min_size=24, max_size=48).filter(
    lambda text: any(c.isdigit() for c in text) and any(c.isalpha() for c in text)
)
PLACES = (
    "message", "bearer", "code", "error type", "param", "header", "nested", "key of the body", "text body",
    "exception", "inner code", "inner type",
)  # fmt: skip
POLICY = Policy(models=ModelChain(primary="openai/alpha", fallbacks=("anthropic/beta",)))


def reply(place: str, secret: str, status: int) -> Reply:
    """A failure whose provider quotes the secret."""
    error: dict[str, Any] = {"message": "Too many requests", "type": "rate_limit_error", "code": "rate_limit"}
    body: object = {"error": error}
    fields: dict[str, Any] = {}
    if place == "message":
        error["message"] = f"Incorrect API key provided: {secret}. You can find your key in the console."
    elif place == "bearer":
        error["message"] = f"invalid header 'Authorization: Bearer {secret}'"
    elif place == "code":
        error["code"] = secret
    elif place == "error type":
        error["type"] = secret
    elif place == "param":
        error["param"] = secret
    elif place == "header":
        fields["headers"] = {"retry-after": "3", "x-request-id": secret, "authorization": f"Bearer {secret}"}
    elif place == "nested":
        error["metadata"] = {"raw": [{"request": {"headers": {"x-api-key": secret}}}]}
    elif place == "key of the body":
        error[secret] = "is not allowed"
    elif place == "text body":
        body = f"<html>upstream said: key={secret} is unknown</html>"
    elif place == "inner code":
        error["details"] = [{"code": secret}, {"error": {"code": f"{secret}_denied", "type": "denied"}}]
    elif place == "inner type":
        error["innererror"] = {"type": secret, "status": secret}
    else:
        fields["message"] = f"HTTPError: 401 for url with {secret}"
    return Reply(status=status, body=body, **fields)


def squashed(text: str) -> str:
    return "".join(c for c in text.lower() if c.isalnum())


def everything(sb: Standby, *said: str) -> str:
    """All that is stored or shown, and nothing of the side table's names."""
    store = sb.core.store
    bodies = [row.body.decode() for row in store.read()]
    texts = [side_entry.text for side_entry in store.side_entries() if side_entry.kind == "text"]
    return "\n".join([*bodies, *texts, *said])


def check_masked(secret: str, place: str, status: int, told: bool) -> None:
    """Whatever a provider quotes, whether the host names the secret or the text shows it by its shape."""
    secret = secret if told else f"sk-test-{secret}"
    clock = iter(range(1_000_000, 9_000_000, 1000))
    said: list[str] = []
    with open(
        MemoryStore(), POLICY, profiles={"openai": ["a"], "anthropic": ["b"]}, clock=lambda: next(clock)
    ) as sb:
        turn = sb.start_turn(session="s", turn="t")
        for _ in range(40):
            if isinstance(step := turn.step, Settled):
                break
            said.append(repr(step))
            if isinstance(step, Wait):
                turn.resume()
            else:
                failed = Failed(reply=reply(place, secret, status), secrets=(secret,) if told else ())
                turn.report(failed)
                with pytest.raises(StandbyError) as caught:
                    turn.report(failed, attempt=99)
                said.append(str(caught.value))
        said += [failure_message(turn.state, 0), repr(turn.state), *map(str, turn.notices)]
        good = sb.start_turn(session="s", turn="t2")
        if not isinstance(good.step, Settled):
            good.report(Failed(reply=reply(place, secret, 402), secrets=(secret,) if told else ()))
        if not isinstance(good.step, Settled):
            good.report(Succeeded())
        said += map(str, good.notices)
        shown = everything(sb, *said)
    assert secret not in shown
    assert squashed(secret) not in squashed(shown)


@pytest.mark.invariant(12)
@pytest.mark.parametrize("place", PLACES)
@given(secret=SECRETS, status=st.sampled_from([400, 401, 402, 429, 500]), told=st.booleans())
def test_no_secret_that_a_provider_quotes_is_kept_or_shown(
    secret: str, place: str, status: int, told: bool
) -> None:
    check_masked(secret, place, status, told)


WORDS = st.lists(st.text(LETTERS[:26], min_size=3, max_size=9), min_size=4, max_size=9).map(" ".join)


@pytest.mark.invariant(12)
@given(prompt=WORDS, session=st.text(LETTERS[:26], min_size=12, max_size=20))
def test_no_request_text_and_no_name_enters_an_event(prompt: str, session: str) -> None:
    """A provider may quote the request; only the side table keeps that, masked, until it is erased."""
    with open(
        MemoryStore(), POLICY, profiles={"openai": [f"{session}@example.com"]}, clock=lambda: 1_000
    ) as sb:
        turn = sb.start_turn(session=session, turn="t")
        for status in (400, 402):
            quoted = Reply(
                status=status, body={"error": {"message": f"Your input '{prompt}' was not accepted"}}
            )
            if not isinstance(turn.step, Settled):
                turn.report(Failed(reply=quoted))
        bodies = "\n".join(row.body.decode() for row in sb.core.store.read())
        assert prompt not in bodies
        assert squashed(prompt) not in squashed(bodies)
        assert session not in bodies
        assert sb.core.erase("session", f"main/{session}") >= 2
        assert all(prompt not in side_entry.text for side_entry in sb.core.store.side_entries())
