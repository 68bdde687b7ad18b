"""Compares a built wheel with the checkout: `python wheel_contents.py CHECKOUT WHEEL`; part of wheel.sh."""

import subprocess
import sys
import zipfile
from pathlib import Path

FOLDERS = ("events", "projections", "engine", "hosts")
SHIPPED = (".py", ".toml", ".sql", ".json")


def expected(root: Path) -> set[str]:
    """Every source file that Git knows in the four folders, at its place in the import package."""
    tracked = subprocess.run(
        ["git", "-C", str(root), "ls-files", *FOLDERS, "src/standby"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\n")
    names = {
        name.removeprefix("src/") if name.startswith("src/") else f"standby/{name}"
        for name in tracked
        if name.endswith(SHIPPED)
    }
    return names | {"standby/py.typed"}


def complaints(root: Path, wheel: Path) -> list[str]:
    """What is wrong with the wheel, in words."""
    with zipfile.ZipFile(wheel) as archive:
        files = {name for name in archive.namelist() if not name.endswith("/")}
    info = {name for name in files if name.split("/")[0].endswith(".dist-info")}
    found = []
    if strangers := sorted({name.split("/")[0] for name in files - info} - {"standby"}):
        found.append(f"top-level names beside standby: {', '.join(strangers)}")
    if missing := sorted(expected(root) - files):
        found.append(f"not shipped: {', '.join(missing)}")
    if not any(name.endswith("licenses/LICENSE") for name in info):
        found.append("the licence is not shipped")
    if not any(name.endswith("entry_points.txt") for name in info):
        found.append("the command standby is not declared")
    return found


if __name__ == "__main__":
    problems = complaints(Path(sys.argv[1]), Path(sys.argv[2]))
    print("\n".join(problems) or "one package, complete")
    sys.exit(1 if problems else 0)
