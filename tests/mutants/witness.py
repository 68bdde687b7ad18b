"""The pytest plugin inside a run with a fault: the tests of the rules first, and which test failed.

It is told what to do by environment variables, because it is loaded before any option is read:

    STANDBY_MUTANTS_TREE    where `standby` has to come from
    STANDBY_MUTANTS_SEEN    where to write the tests that failed, as JSON
    STANDBY_MUTANTS_RULES   rules whose tests come first, with spaces between them
    STANDBY_MUTANTS_ONLY    when set, no other tests run
"""

import json
import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

import standby

__all__ = ["SECONDS_A_TEST"]

SECONDS_A_TEST = 60
"""A test that takes longer hangs: a fault can take away what ends a loop."""

MEMORY = 4 << 30
"""Bytes; such a loop may also collect without end."""

_seen: list[dict[str, object]] = []


class Hung(BaseException):
    """Past `except Exception`, wherever the loop is."""


def _hung(signum: int, frame: FrameType | None) -> None:
    raise Hung(f"no end after {SECONDS_A_TEST} s")


def pytest_configure(config: pytest.Config) -> None:
    tree, place = Path(os.environ["STANDBY_MUTANTS_TREE"]), Path(standby.__file__).resolve()
    if tree.resolve() not in place.parents:
        raise pytest.UsageError(f"standby was imported from {place}, not from the copy in {tree}")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, _hung)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = set(os.environ["STANDBY_MUTANTS_RULES"].split())
    first = [item for item in items if wanted & _rules_of(item)]
    others = [item for item in items if not wanted & _rules_of(item)]
    if os.environ.get("STANDBY_MUTANTS_ONLY"):
        config.hook.pytest_deselected(items=others)
        others = []
    items[:] = [*first, *others]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    signal.alarm(SECONDS_A_TEST)
    try:
        return (yield)
    finally:
        signal.alarm(0)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if report.failed:  # type: ignore[attr-defined]  # set at run time
        _seen.append({"test": item.nodeid, "rules": sorted(_rules_of(item))})
    return report


def pytest_sessionfinish() -> None:
    Path(os.environ["STANDBY_MUTANTS_SEEN"]).write_text(json.dumps(_seen), encoding="utf-8")


def _rules_of(item: pytest.Item) -> set[str]:
    return {str(rule) for mark in item.iter_markers("rule") for rule in mark.args}
