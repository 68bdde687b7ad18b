"""What gets installed is pinned, and what is needed at run time is justified."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

pytestmark = pytest.mark.checkout

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
RUNTIME = [Requirement(text).name for text in PYPROJECT["project"]["dependencies"]]
DEVELOPMENT = [Requirement(text).name for text in PYPROJECT["dependency-groups"]["dev"]]


def pinned() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in pairs}


def closure(names: list[str]) -> set[str]:
    """All distributions that installing `names` brought; what is not installed brings nothing."""
    seen: set[str] = set()
    waiting = [canonicalize_name(name) for name in names]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        try:
            needed = [Requirement(text) for text in requires(name) or ()]
        except PackageNotFoundError:
            continue
        seen.add(name)
        waiting += [
            canonicalize_name(requirement.name)
            for requirement in needed
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        ]
    return seen


def test_the_closure_follows_dependencies() -> None:
    assert {"httpx", "httpcore", "h11", "anyio"} <= closure(["httpx"])


def test_everything_that_make_installs_is_pinned() -> None:
    assert sorted(closure(RUNTIME + DEVELOPMENT) - set(pinned())) == []


def test_every_runtime_dependency_is_justified() -> None:
    page = (ROOT / "specs" / "decisions.md").read_text(encoding="utf-8")
    section = page.partition("## Runtime dependencies")[2].partition("\n## ")[0]
    assert sorted(re.findall(r"^\| ([a-z0-9-]+) \| .+ \| .+ \|$", section, re.MULTILINE)) == sorted(
        [*RUNTIME, "package"]
    )
