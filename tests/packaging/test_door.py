"""The public door: what `import standby` promises, and what it costs."""

import json
import subprocess
import sys

import pytest

import standby

pytestmark = pytest.mark.checkout

# The whole public API. A name leaves it with a new major version only, and enters it with a CHANGELOG line.
DOOR: tuple[str, ...] = (
    "CallModel",
    "Effects",
    "Failed",
    "ModelChain",
    "Policy",
    "Profile",
    "Repair",
    "Reply",
    "SettleUnknown",
    "Settled",
    "Standby",
    "StandbyError",
    "Succeeded",
    "TurnFailed",
    "TurnHandle",
    "Unknown",
    "Wait",
    "apply",
    "open",
    "plan",
    "verify",
)

# What `import standby` must leave to those who use it.
HEAVY = ("asyncio", "httpx", "rich", "sqlite_utils", "typer")

# Peak memory that the import may add to that of the bare interpreter.
IMPORT_MIB = 25


def test_the_door_is_pinned() -> None:
    assert tuple(getattr(standby, "__all__", ())) == DOOR


def test_every_name_of_the_door_is_there() -> None:
    assert [name for name in DOOR if not hasattr(standby, name)] == []


MEASURE = """
import json, resource, sys
{statement}
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
try:  # of this program alone: ru_maxrss remembers the process that it was forked from
    with open("/proc/self/status") as status:
        peak = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
except OSError:
    pass
print(json.dumps({{"peak": peak, "modules": sorted(sys.modules)}}))
"""


def measured(statement: str) -> tuple[float, set[str]]:
    """Peak memory in MiB and the modules loaded by a fresh interpreter that runs `statement`."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE.format(statement=statement)],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(path for path in sys.path if path)},
    )
    answer = json.loads(done.stdout)
    return answer["peak"] / 2**20, set(answer["modules"])


@pytest.mark.parametrize("statement", ["import standby", "import standby; standby.open(':memory:')"])
def test_the_import_loads_nothing_heavy(statement: str) -> None:
    """Embedding the core needs none of it either."""
    _, modules = measured(statement)
    assert "standby" in modules
    assert modules.isdisjoint(HEAVY)


def test_the_import_is_light() -> None:
    bare, _ = measured("pass")
    full, _ = measured("import standby")
    assert full - bare < IMPORT_MIB


def test_the_measurement_sees_what_is_heavy() -> None:
    peak, modules = measured("import httpx, asyncio; weight = bytearray(40 * 2**20)")
    bare, _ = measured("pass")
    assert not modules.isdisjoint(HEAVY)
    assert peak - bare > IMPORT_MIB
