"""`python -m tests.mutants`: apply small faults to a copy of the engine and report those that no test sees.

Exits with 0 when each fault was seen or is explained, with 1 when one survived or an explanation does not fit,
and with 2 when nothing could be found out, because tests fail without any fault.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

from specs.catalogue import later_reasons, parse_rules
from tests.mutants.choose import chosen, chosen_for_rule
from tests.mutants.explained import ExplanationError, Key, read_explained, reason_for, stale
from tests.mutants.places import SECTIONS, Fault, find_faults
from tests.mutants.report import Outcome, as_json, described, table
from tests.mutants.trees import QUICK, SECOND_STAGE, Ending, Tree

__all__ = ["main"]

ROOT = Path(__file__).resolve().parents[2]


class _Unsound(Exception):
    """Tests fail although nothing was changed."""


class _Trees:
    """Some copies, each used by one worker at a time."""

    def __init__(self, root: Path, folder: Path, jobs: int) -> None:
        self.jobs = jobs
        first = Tree(root, folder, 0)
        self.path = first.path
        """One of the copies. All are of the same moment: somebody may be at work where they were made from."""
        self.free: SimpleQueue[Tree] = SimpleQueue()
        for tree in (first, *(Tree(first.path, folder, number) for number in range(1, jobs))):
            self.free.put(tree)

    @contextmanager
    def one(self) -> Iterator[Tree]:
        tree = self.free.get()
        try:
            yield tree
        finally:
            self.free.put(tree)

    def all(self, work: Callable[[Tree, Fault], Outcome], faults: Sequence[Fault]) -> Iterator[Outcome]:
        def with_tree(fault: Fault) -> Outcome:
            with self.one() as tree:
                return work(tree, fault)

        with ThreadPoolExecutor(self.jobs) as pool:
            yield from pool.map(with_tree, faults)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="chooses the places (default 1)")
    parser.add_argument("--per-section", type=int, default=3, metavar="N", help="faults a section (default 3)")
    parser.add_argument("--all", action="store_true", help="every fault; takes hours")
    parser.add_argument("--only", choices=SECTIONS, action="append", help="this section; may be repeated")
    parser.add_argument("--rule", metavar="ID", help="places that cite this rule, and the tests that hold it")
    parser.add_argument(
        "--each-rule", action="store_true", help="whether of some faults near each rule's citations one is seen"
    )
    parser.add_argument("--at", metavar="FILE:LINE", action="append", help="the faults on this line")
    parser.add_argument("--explained", action="store_true", help="exactly the faults that are explained")
    parser.add_argument("--quick", action="store_true", help="only the tests of rules, not the second stage")
    parser.add_argument("--list", action="store_true", help="print the chosen faults and run nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--jobs", type=int, default=2, help="runs at once (default 2)")
    parser.add_argument(
        "--leave-out-failing", action="store_true", help="go on without tests that fail already"
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as the options say; returns the exit status."""
    options = _options(arguments)
    try:
        explained = read_explained()
    except ExplanationError as error:
        print(error, file=sys.stderr)
        return 1
    if options.list:
        for fault in _picked(options, find_faults(ROOT), explained, ROOT):
            print(described(Outcome(fault, Ending(True), reason_for(explained, fault))))
        return 0
    with tempfile.TemporaryDirectory(prefix="standby-mutants-") as folder:
        trees = _Trees(ROOT, Path(folder), options.jobs)
        faults = find_faults(trees.path)
        try:
            leave_out, timeout_s = _sound(trees, options.quick, options.leave_out_failing)
        except _Unsound as error:
            print(error, file=sys.stderr)
            return 2
        if options.each_rule:
            return _each_rule(trees, options, faults, leave_out, timeout_s)
        picked = _picked(options, faults, explained, trees.path)
        outcomes = []
        for outcome in trees.all(_work(options, explained, leave_out, timeout_s), picked):
            outcomes.append(outcome)
            _say(outcome, len(outcomes), len(picked))
    return _concluded(options, faults, outcomes, stale(explained, faults))


def _picked(
    options: argparse.Namespace, faults: list[Fault], explained: dict[Key, str], root: Path
) -> list[Fault]:
    if options.at:
        return [fault for fault in faults if f"{fault.file}:{fault.line}" in options.at]
    if options.explained:
        return [fault for fault in faults if reason_for(explained, fault)]
    most = None if options.all else options.per_section
    if options.rule:
        return chosen_for_rule(faults, options.rule, options.seed, most, root)
    return chosen(faults, options.only or SECTIONS, options.seed, most)


def _sound(trees: _Trees, quick: bool, go_on: bool) -> tuple[list[str], float]:
    """Run the tests without any fault: those to leave out, and how long a run with a fault may take.

    Raises:
        _Unsound: tests fail, and they are not to be left out.
    """
    with trees.one() as tree:
        ending = tree.run(QUICK if quick else (*QUICK, *SECOND_STAGE), to_the_end=True)
    if not ending.passed:
        said = "\n".join(["Without any fault these tests fail, so that they can hold nothing:", *ending.by])
        if not go_on or ending.by in (("import",), ("time",)):
            raise _Unsound(f"{said}\n{ending.output[-4000:]}")
        print(said, file=sys.stderr)
    return list(ending.by), max(120.0, 10 * ending.seconds)


def _work(
    options: argparse.Namespace,
    explained: dict[Key, str],
    leave_out: list[str],
    timeout_s: float,
) -> Callable[[Tree, Fault], Outcome]:
    def work(tree: Tree, fault: Fault) -> Outcome:
        ending = Ending(True)
        if options.rule:
            ending = tree.seen_by_rule(fault, options.rule, leave_out=leave_out, timeout_s=timeout_s)
        if ending.passed:
            ending = tree.with_fault(fault, quick=options.quick, leave_out=leave_out, timeout_s=timeout_s)
        return Outcome(fault, ending, reason_for(explained, fault, survived=ending.passed))

    return work


def _each_rule(
    trees: _Trees, options: argparse.Namespace, faults: list[Fault], leave_out: list[str], timeout_s: float
) -> int:
    """For each rule that is cited: is one of the faults near its citations seen by a test that holds it?"""
    wanted = options.only or SECTIONS
    catalogue = parse_rules((trees.path / "specs/rules.md").read_text(encoding="utf-8"))
    # Rules whose turn has not come may be cited already; nothing has to hold them yet.
    due = set(catalogue.rules) - set(later_reasons(catalogue))
    rules = sorted(
        {rule for one in faults for rule in one.rules if rule.partition("-")[0] in wanted and rule in due}
    )

    def held(rule: str) -> tuple[str, int, str]:
        tried = 0
        for fault in chosen_for_rule(faults, rule, options.seed, options.per_section, trees.path):
            tried += 1
            with trees.one() as tree:
                ending = tree.seen_by_rule(fault, rule, leave_out=leave_out, timeout_s=timeout_s)
            if not ending.passed:
                return rule, tried, ending.by[0]
        return rule, tried, ""

    found = []
    with ThreadPoolExecutor(trees.jobs) as pool:
        for rule, tried, by in pool.map(held, rules):
            found.append((rule, tried, by))
            said = f"held by {by}" if by else "not held"
            print(f"{rule}: {said} ({tried} tried)", file=sys.stderr, flush=True)
    unheld = [rule for rule, _, by in found if not by]
    if options.json:
        print(json.dumps({"seed": options.seed, "rules": found, "not_held": unheld}, indent=1))
    else:
        print(f"{len(found) - len(unheld)} of {len(found)} rules held against a fault near their citations")
        print(f"not held: {', '.join(unheld) or 'none'}; seed {options.seed}")
    return 1 if unheld else 0


def _say(outcome: Outcome, number: int, of: int) -> None:
    fault = outcome.fault
    by = f" by {outcome.ending.by[0]}" if outcome.killed else ""
    print(f"[{number}/{of}] {fault.file}:{fault.line} {outcome.verdict}{by}", file=sys.stderr, flush=True)


def _concluded(
    options: argparse.Namespace,
    faults: list[Fault],
    outcomes: list[Outcome],
    without_fault: list[Key],
) -> int:
    bad = [one for one in outcomes if one.verdict in ("survived", "explained, but killed")]
    unheld = _unheld(options.rule, outcomes) if options.rule else []
    seen_sections = {section for one in outcomes for section in one.fault.sections}
    narrow = options.rule or options.at or options.explained
    wanted = options.only or [section for section in SECTIONS if not narrow or section in seen_sections]
    places = {
        section: len({(one.file, one.place) for one in faults if section in one.sections}) for section in wanted
    }
    if options.json:
        whole = {
            "seed": options.seed,
            "places": places,
            "faults": [as_json(one) for one in outcomes],
            "explanations_without_fault": [list(key) for key in without_fault],
            "not_seen_by_rule": [as_json(one) for one in unheld],
        }
        print(json.dumps(whole, ensure_ascii=False, indent=1))
    else:
        for one in outcomes:
            if one.verdict != "killed":
                print(described(one))
        for key in without_fault:
            print(f"explained.toml explains a fault that does not exist: {key}")
        for one in unheld:
            print(f"no test of {options.rule} sees this:\n{described(one)}")
        print(table(outcomes, places, options.seed, wanted))
    nobody = bool(options.rule) and len(unheld) == len(outcomes)
    if nobody:
        print(f"no test that holds {options.rule} sees any fault in the places that cite it", file=sys.stderr)
    return 1 if bad or without_fault or nobody else 0


def _unheld(rule: str, outcomes: list[Outcome]) -> list[Outcome]:
    """Faults in a place of the rule that were seen by tests of other rules only."""
    return [one for one in outcomes if one.killed and rule not in one.ending.rules]


if __name__ == "__main__":
    sys.exit(main())
