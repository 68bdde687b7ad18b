"""Invariants 1 to 8 and 13: for each, histories that are made to break it."""

from __future__ import annotations

import pytest

from tests.properties.holds import holds


@pytest.mark.invariant(1)
def test_every_turn_ends_within_its_bound() -> None:
    holds(1)


@pytest.mark.invariant(2)
def test_a_strict_selection_tries_no_other_model_and_no_fallback_changes_a_selection() -> None:
    holds(2)


@pytest.mark.invariant(3)
def test_what_the_log_shows_as_blocked_is_left_alone() -> None:
    holds(3)


@pytest.mark.invariant(4)
def test_a_rate_limit_block_ends_when_the_provider_said() -> None:
    holds(4)


@pytest.mark.invariant(5)
def test_a_block_reaches_as_far_as_its_cause() -> None:
    holds(5)


@pytest.mark.invariant(6)
def test_nothing_is_replayed_after_an_unsafe_attempt_and_nothing_follows_a_cancel() -> None:
    holds(6)


@pytest.mark.invariant(7)
def test_notices_are_told_once_and_only_where_they_belong() -> None:
    holds(7)


@pytest.mark.invariant(8)
def test_stickiness_is_short() -> None:
    holds(8)


@pytest.mark.invariant(13)
def test_profiles_are_taken_in_order() -> None:
    holds(13)
