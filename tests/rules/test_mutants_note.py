"""NOTE, closer: whose words stand in a notice."""

import pytest

from standby.engine.texts.notices import reason_text
from standby.events.vocabulary import Failure

TELLING = "Too many requests, try again in 5 minutes"
WORDY = {
    Failure.RATE_LIMIT,
    Failure.OVERLOADED,
    Failure.TIMEOUT,
    Failure.EMPTY_RESPONSE,
    Failure.NO_ERROR_DETAILS,
    Failure.UNCLASSIFIED,
}


@pytest.mark.rule("NOTE-1")
@pytest.mark.parametrize("reason", list(Failure))
def test_the_providers_words_stand_for_the_reasons_that_say_little_themselves(reason: Failure) -> None:
    plain = reason.value.replace("_", " ")
    assert reason_text(reason, TELLING) == (TELLING if reason in WORDY else plain)
    assert reason_text(reason, "no telling words") == plain
