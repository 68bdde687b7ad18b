"""Settings for all tests: how long Hypothesis looks, and the marker for tests that need the checkout."""

import os

import pytest
from hypothesis import settings

# `make test` must answer the same on every machine: no deadline, and examples that do not depend on chance.
settings.register_profile("default", deadline=None, derandomize=True, max_examples=50)
# `make test-long` looks for what nobody has seen yet; a failure prints how to repeat it.
settings.register_profile("long", deadline=None, max_examples=2_000, print_blob=True)
settings.load_profile("long" if os.environ.get("STANDBY_TESTS") == "long" else "default")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "checkout: needs files beside the packages (README, specs, examples); not run on a bare wheel",
    )
