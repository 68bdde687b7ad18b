"""Writes examples/README.md from the examples themselves: `python -m tests.simulate.readme`."""

from pathlib import Path

from standby.hosts.simulate import load_scenario

__all__ = ["EXAMPLES", "SCENARIOS", "readme"]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SCENARIOS = sorted((EXAMPLES / "scenarios").glob("*.toml"))

_HEAD = """# Examples

[policy.toml](policy.toml) is a settings file with everything that can be said in one.

The scenarios below are small stories about failing providers, each told in a file that can be read in a
minute and played in a moment. The clock is virtual and no network is involved; engine, log and runner are the
real ones.

    standby simulate examples/scenarios/bill-empty-wallet.toml

prints every decision with the rules that made it, and says whether everything came out as the file expects
(exit status 1 if not). With `--log FILE` the log is kept, for `standby verify`, `explain`, `status` and `log`;
with `--json` everything comes as data.

A file of your own tests your policy in the same way: say in `[policy]` what your settings file says, in
`[[outcomes]]` what goes wrong, in `[[steps]]` what happens, and in `expect` what must come of it.

| file | what it shows | rules |
|---|---|---|
"""


def readme() -> str:
    """The whole page."""
    rows = []
    for path in SCENARIOS:
        scenario = load_scenario(path).scenario
        rules = " ".join(scenario.shows)
        rows.append(f"| [{path.stem}](scenarios/{path.name}) | {scenario.title} | {rules} |\n")
    return _HEAD + "".join(rows)


if __name__ == "__main__":
    (EXAMPLES / "README.md").write_text(readme(), encoding="utf-8")
