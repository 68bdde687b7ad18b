"""Server-sent events from bytes in any cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standby.hosts.providers.sse import SseDecoder, SseEvent


def decoded(*chunks: bytes) -> list[SseEvent]:
    decoder = SseDecoder()
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    return events + decoder.end()


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_may_end_in_three_ways(end: bytes) -> None:
    raw = b"event: ping" + end + b"data: one" + end + b"data: two" + end + end + b"data: three" + end + end
    assert decoded(raw) == [SseEvent("ping", "one\ntwo"), SseEvent("", "three")]


def test_comments_and_unknown_fields_are_passed_over() -> None:
    raw = b": keep alive\n\nid: 7\nretry: 10\ndata:no space\n\nevent: nothing\n\ndata\n\n"
    assert decoded(raw) == [SseEvent("", "no space")]


def test_a_line_that_was_cut_off_is_no_event() -> None:
    assert decoded(b'data: {"whole": 1}\n\ndata: {"cut":') == [SseEvent("", '{"whole": 1}')]


def test_only_the_empty_line_may_be_missing_at_the_end() -> None:
    assert decoded(b"data: [DONE]\n") == [SseEvent("", "[DONE]")]


texts = st.text(st.characters(exclude_characters="\r\n\ufeff", exclude_categories=["Cs"]), min_size=1)


@given(st.lists(st.tuples(st.sampled_from(["\n", "\r\n"]), st.lists(texts, min_size=1)), max_size=4), st.data())
def test_the_cut_of_the_bytes_does_not_matter(events: list[tuple[str, list[str]]], data: st.DataObject) -> None:
    raw = "".join("".join(f"data: {line}{end}" for line in lines) + end for end, lines in events).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6)))
    chunks = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    assert decoded(*chunks) == [SseEvent("", "\n".join(lines)) for _, lines in events]
