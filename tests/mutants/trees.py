"""Copies of the tree, in which the tests run with a fault, and how such a run ends.

Nothing is changed where people work. A copy keeps its compiled modules but for the one that is changed, so that
a run takes little more than the tests themselves.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.mutants.places import Fault, apply_fault

__all__ = ["QUICK", "SECOND_STAGE", "Ending", "Tree"]

QUICK = ("tests/rules",)
SECOND_STAGE = ("tests/machine", "tests/properties/test_invariants.py", "tests/properties/test_machine.py")
"""Looked at only where the tests of the rules see nothing."""

_PARTS = ("events", "projections", "engine", "hosts", "specs", "tests", "examples", "src", "pyproject.toml")
_LEFT_OUT = shutil.ignore_patterns("__pycache__", ".*", "*.egg-info", "node_modules")

_PASSED, _FAILED, _NONE_COLLECTED = 0, 1, 5


class Ending(NamedTuple):
    """How a run of tests ended."""

    passed: bool
    by: tuple[str, ...] = ()
    """The tests that failed; "import" when they could not even be collected, "time" when they did not end."""
    rules: frozenset[str] = frozenset()
    """The rules that the first of them holds."""
    seconds: float = 0
    output: str = ""


class Tree:
    """One copy."""

    def __init__(self, root: Path, copy: Path, number: int) -> None:
        self.path = copy / f"tree{number}"
        self._seen = copy / f"seen{number}.json"
        self.path.mkdir(parents=True)
        for name in _PARTS:
            source, target = root / name, self.path / name
            if source.is_dir():
                shutil.copytree(source, target, symlinks=True, ignore=_LEFT_OUT)
            elif source.exists():
                shutil.copy2(source, target)

    def run(
        self,
        paths: Iterable[str],
        *,
        first: Iterable[str] = (),
        only: bool = False,
        to_the_end: bool = False,
        leave_out: Sequence[str] = (),
        timeout_s: float = 600,
    ) -> Ending:
        """Run the tests below `paths`, those that hold the rules `first` before the others."""
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.path / "src"),
            "PYTHONHASHSEED": "0",
            "STANDBY_MUTANTS_TREE": str(self.path),
            "STANDBY_MUTANTS_SEEN": str(self._seen),
            "STANDBY_MUTANTS_RULES": " ".join(sorted(first)),
            "STANDBY_MUTANTS_ONLY": "1" if only else "",
        }
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "tests.mutants.witness",
            "-p",
            "no:cacheprovider",
        ]
        command += ["-m", "not long", *paths, *([] if to_the_end else ["-x"])]
        command += [f"--deselect={test}" for test in leave_out]
        self._seen.unlink(missing_ok=True)
        began = time.monotonic()
        with subprocess.Popen(
            command,
            cwd=self.path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        ) as process:
            try:
                output, _ = process.communicate(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                return Ending(False, ("time",), seconds=time.monotonic() - began)
        return self._ending(process.returncode, time.monotonic() - began, output)

    def _ending(self, code: int, seconds: float, output: str) -> Ending:
        seen = json.loads(self._seen.read_text(encoding="utf-8")) if self._seen.exists() else []
        if code in (_PASSED, _NONE_COLLECTED):
            return Ending(True, seconds=seconds, output=output)
        if not seen:
            return Ending(False, ("import",), seconds=seconds, output=output)
        return Ending(
            False, tuple(one["test"] for one in seen), frozenset(seen[0]["rules"]), seconds, output=output
        )

    def with_fault(
        self,
        fault: Fault,
        *,
        quick: bool = False,
        leave_out: Sequence[str] = (),
        timeout_s: float = 600,
    ) -> Ending:
        """Run with this fault: the tests of its rules, the other tests of rules, then, unless it has to be
        `quick`, those of the second stage, until one fails."""
        with _Changed(self.path / fault.file, fault):
            ending = self.run(QUICK, first=fault.rules, leave_out=leave_out, timeout_s=timeout_s)
            if ending.passed and not quick:
                ending = self.run(SECOND_STAGE, leave_out=leave_out, timeout_s=timeout_s)
        return ending

    def seen_by_rule(
        self, fault: Fault, rule: str, *, leave_out: Sequence[str] = (), timeout_s: float = 600
    ) -> Ending:
        """Run with this fault, but only the tests that hold `rule`."""
        with _Changed(self.path / fault.file, fault):
            return self.run(QUICK, first=(rule,), only=True, leave_out=leave_out, timeout_s=timeout_s)


class _Changed:
    """A file with a fault in it, for a while."""

    def __init__(self, path: Path, fault: Fault) -> None:
        self.path, self.fault = path, fault
        self.text = path.read_text(encoding="utf-8")

    def __enter__(self) -> None:
        self._write(apply_fault(self.text, self.fault.edit))

    def __exit__(self, *_: object) -> None:
        self._write(self.text)

    def _write(self, text: str) -> None:
        # A compiled module is recognised by size and second of its source, which a fault may leave as they are.
        for compiled in (self.path.parent / "__pycache__").glob(f"{self.path.stem}.*.pyc"):
            compiled.unlink()
        self.path.write_text(text, encoding="utf-8")
