"""The way of a failed report: which functions `turn.report` passes until the host has its next step.

    python -m bench.failed_report [--json] [--list]

The turn is the failed turn of `bench.figures` on the memory store: a billing failure is read, classified and
decided on, and the fallback is called. Counted are our own frames only, each function once, code that libraries
or the compiler generate for us included; and how often the way goes from one file to another. Warmed up before,
so that what is compiled or imported once does not count.
"""

import argparse
import json
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple

from bench.figures import FAILURE, PROFILES, service_on
from standby.events.memory import MemoryStore
from standby.hosts.reports import Failed

ROOTS = tuple(
    f"{Path(__file__).resolve().parents[1] / name}/" for name in ("events", "projections", "engine", "hosts")
)


class Way(NamedTuple):
    """What a call passed."""

    calls: int
    functions: int
    files: int
    changes: int
    """How often the next function lies in another file than the one before."""
    names: tuple[str, ...]
    """Each function once, in the order of its first call."""


def _file_of(code: CodeType) -> str:
    return str(Path(code.co_filename).resolve()) if not code.co_filename.startswith("<") else code.co_filename


def way_of(run: Callable[[], object]) -> Way:
    """Run once and tell which of our functions it passed."""
    passed: list[CodeType] = []

    def note(frame: FrameType, event: str, arg: object) -> None:
        if event == "call":
            passed.append(frame.f_code)

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    ours = [(code, _file_of(code)) for code in passed]
    ours = [(code, file) for code, file in ours if file.startswith((*ROOTS, "<string>"))]
    files = [file for _, file in ours]
    names = dict.fromkeys(f"{Path(file).stem}.{code.co_qualname}" for code, file in ours)
    return Way(
        calls=len(ours),
        functions=len({code for code, _ in ours}),
        files=len({*files}),
        changes=sum(one != other for one, other in pairwise(files)),
        names=tuple(names),
    )


def failed_report() -> Way:
    """The way of the bench's failed report."""
    service = service_on(MemoryStore())
    service.observe({"openai": ["one"], "anthropic": PROFILES["anthropic"]})

    def start(key: int) -> Callable[[], object]:
        turn = service.start_turn(session=f"f{key}", fallbacks=("anthropic/beta",), model="free/alpha")
        return lambda: turn.report(Failed(reply=FAILURE)) and turn.step

    for key in range(20):
        start(key)()
    return way_of(start(20))


def main() -> None:
    """Print the way."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one object")
    parser.add_argument("--list", action="store_true", help="name each function")
    options = parser.parse_args()
    way = failed_report()
    if options.json:
        print(json.dumps(way._asdict()))
        return
    print(f"{way.functions} functions, {way.files} files, {way.changes} changes of file, {way.calls} calls")
    for name in way.names if options.list else ():
        print(" ", name)


if __name__ == "__main__":
    main()
