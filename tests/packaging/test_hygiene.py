"""Small promises about the sources: every exception from a check has a reason, and files stay readable."""

import io
import re
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.checkout

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("events", "projections", "engine", "hosts", "specs", "bench", "examples", "tests")

LINES_MOST = 500
# Longer files, each with the reason why no seam was found to split it along.
LONG: dict[str, str] = {}

SUPPRESSION = re.compile(r"#\s*(noqa|type:\s*ignore)(?P<codes>(:\s*[A-Z0-9, ]+|\[[a-z0-9, -]+\])?)(?P<rest>.*)")


def sources(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def comments(source: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def unexplained(source: str) -> list[int]:
    """Lines whose `noqa` or `type: ignore` lacks a code or a reason of at least two words after it."""
    return [
        line
        for line, comment in comments(source)
        if (found := SUPPRESSION.search(comment))
        and (not found["codes"] or len(re.findall(r"[A-Za-z]{2,}", found["rest"])) < 2)
    ]


def without_reason(pyproject: str) -> list[str]:
    """Rules in ruff's `ignore` list whose line has no comment."""
    ignored = tomllib.loads(pyproject)["tool"]["ruff"]["lint"].get("ignore", [])
    return [rule for rule in ignored if not re.search(rf'^\s*"{rule}",\s*# \w+ \w+', pyproject, re.MULTILINE)]


def test_every_lint_that_is_ignored_has_a_reason() -> None:
    assert without_reason((ROOT / "pyproject.toml").read_text(encoding="utf-8")) == []


def test_every_suppressed_check_has_a_code_and_a_reason() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sources(*FOLDERS)
        for line in unexplained(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_files_stay_readable() -> None:
    long = {
        path.relative_to(ROOT).as_posix()
        for path in sources(*FOLDERS)
        if len(path.read_text(encoding="utf-8").splitlines()) > LINES_MOST
    }
    assert {name for name in long if not name.startswith("tests/")} == set(LONG)
    assert all(LONG.values())


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("x = 1  # noqa: N802 - the name of the protocol\n", []),
        ("x = f()  # type: ignore[attr-defined]  # msgspec sets it on every struct\n", []),
        ("text = '# noqa'\n", []),
        ("x = 1  # noqa\n", [1]),
        ("\nx = 1  # noqa: N802\n", [2]),
        ("x = f()  # type: ignore\n", [1]),
        ("x = f()  # type: ignore[attr-defined]\n", [1]),
        ("x = f()  # type: ignore[attr-defined]  # sorry\n", [1]),
    ],
)
def test_a_missing_reason_is_seen(source: str, lines: list[int]) -> None:
    assert unexplained(source) == lines


def test_an_ignored_lint_without_a_reason_is_seen() -> None:
    pyproject = '[tool.ruff.lint]\nignore = [\n  "E501",  # tables are wide\n  "N818",\n]\n'
    assert without_reason(pyproject) == ["N818"]
