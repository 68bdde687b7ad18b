"""Who may import whom, and which folders stay pure; imports inside functions count."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.checkout

ROOT = Path(__file__).resolve().parents[2]

# Each folder may import itself and those before it.
LAYERS = ("events", "projections", "engine", "hosts")
PURE = ("events", "projections", "engine")

# A decision must follow from the log, so nothing that sees the world can be imported where decisions are made.
# fmt: off
IMPURE = frozenset({
    "aiohttp", "asyncio", "concurrent", "contextvars", "ctypes", "fcntl", "getpass", "glob", "http",
    "httpx", "io", "locale", "logging", "mmap", "multiprocessing", "os", "pathlib", "platform",
    "platformdirs", "queue", "random", "requests", "rich", "sched", "secrets", "select", "selectors",
    "shutil", "signal", "socket", "sqlite3", "sqlite_utils", "ssl", "subprocess", "sys", "tempfile",
    "threading", "time", "typer", "urllib", "uuid", "warnings", "zoneinfo",
})
# fmt: on
# Calls that read a clock, a file, the terminal or something that differs between two runs.
IMPURE_CALLS = frozenset({"open", "print", "input", "hash", "id", "breakpoint"})
CLOCK_CALLS = frozenset({"now", "utcnow", "today"})

# The two stores do I/O: that is what they are for.
STORES = {
    "events/sqlite.py": {"os", "pathlib", "random", "sqlite3", "sqlite_utils", "threading", "time"},
    "events/memory.py": {"os", "threading", "time"},
}


def modules(*folders: str) -> list[str]:
    return [
        path.relative_to(ROOT).as_posix()
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*.py"))
    ]


def parsed(name: str) -> ast.Module:
    return ast.parse((ROOT / name).read_text(encoding="utf-8"), filename=name)


def imported(tree: ast.AST) -> Iterator[str]:
    """Dotted names of all imported modules; `from standby import engine` counts as `standby.engine`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield module
            if module == "standby":
                yield from (f"standby.{alias.name}" for alias in node.names)


def wrong_imports(layer: str, tree: ast.AST) -> list[str]:
    allowed = LAYERS[: LAYERS.index(layer) + 1]
    return [
        name
        for name in imported(tree)
        if name.startswith(".")
        or name.split(".")[0] in LAYERS
        or (name.split(".")[0] == "standby" and (*name.split("."), "")[1] not in allowed)
    ]


def impurities(tree: ast.AST, allowed: set[str]) -> list[str]:
    found = [name for name in imported(tree) if name.split(".")[0] in IMPURE - allowed]
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in IMPURE_CALLS:
                found.append(f"{name}()")
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=name)) if (
                name in CLOCK_CALLS and owner in ("datetime", "date", "dt")
            ):
                found.append(f"{owner}.{name}()")
    return found


@pytest.mark.parametrize("name", modules(*LAYERS))
def test_imports_go_one_way(name: str) -> None:
    assert wrong_imports(name.split("/")[0], parsed(name)) == []


@pytest.mark.invariant(15)
@pytest.mark.parametrize("name", modules(*PURE))
def test_where_decisions_are_made_nothing_sees_the_world(name: str) -> None:
    assert impurities(parsed(name), STORES.get(name, set())) == []


def test_the_stores_are_named_as_they_are() -> None:
    assert set(STORES) <= set(modules(*PURE))


@pytest.mark.parametrize(
    ("layer", "source"),
    [
        ("events", "from standby.engine.plan import plan"),
        ("projections", "def f():\n    import standby.engine"),
        ("engine", "from standby import hosts"),
        ("engine", "import standby"),
        ("events", "if TYPE_CHECKING:\n    from standby.projections import health"),
        ("hosts", "from . import runner"),
        ("hosts", "import engine"),
    ],
)
def test_a_wrong_import_is_seen(layer: str, source: str) -> None:
    assert len(wrong_imports(layer, ast.parse(source))) >= 1


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "def f():\n    from os import environ",
        "import urllib.request",
        "from datetime import datetime\ndatetime.now()",
        "open('x')",
        "hash(x)",
    ],
)
def test_an_impurity_is_seen(source: str) -> None:
    assert len(impurities(ast.parse(source), set())) == 1


def test_what_is_pure_passes() -> None:
    source = "from datetime import datetime\nimport re\nview.now()\nself.open(x)\ndatetime.fromtimestamp(0)"
    assert impurities(ast.parse(source), set()) == []
