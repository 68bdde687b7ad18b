#!/bin/sh
# Tests what users install: builds sdist and wheel, installs the wheel in a fresh environment outside the
# checkout, looks at what it brought, and runs the tests against it. `make wheel-test` calls this.
#
# pytest must not see the checkout: its `pythonpath = ["src", "."]` would shadow the installed package. So the
# tests run from a copy of tests/, and pythonpath is that copy's parent alone. Left out are tests that need files
# beside the packages: tests/specs, tests/packaging, and whatever else carries the marker `checkout`.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
builder=${BUILDER:-$root/.venv/bin/python}
place=$(mktemp -d "${TMPDIR:-/tmp}/standby-wheel.XXXXXX")
trap 'rm -rf "$place"' EXIT
trap 'exit 130' INT TERM

say() { printf '== %s\n' "$*"; }

say "building"
"$builder" -m build --outdir "$place/dist" "$root" >"$place/build.log" 2>&1 || {
    cat "$place/build.log"
    exit 1
}
wheel=$(echo "$place"/dist/standby-*.whl)
ls "$place/dist"

say "looking into the wheel"
"$builder" "$root/tests/packaging/wheel_contents.py" "$root" "$wheel"

say "installing it in a fresh environment"
"$builder" -m venv "$place/venv"
python=$place/venv/bin/python
"$python" -m pip install -qq --disable-pip-version-check -c "$root/constraints.txt" \
    "$wheel" pytest pytest-xdist hypothesis
mkdir "$place/work"
cp -R "$root/tests" "$root/pyproject.toml" "$place/work/"
cd "$place/work"
rm -rf tests/specs tests/packaging
find . -name __pycache__ -type d -prune -exec rm -rf {} +
unset PYTHONPATH PYTHONHOME

say "importing and starting it"
"$python" - "$root" <<'END'
import pathlib, sys
import standby
import standby.engine, standby.events, standby.hosts, standby.projections
where = pathlib.Path(standby.__file__).resolve()
assert pathlib.Path(sys.prefix).resolve() in where.parents, f"imported from {where}, not from the environment"
assert pathlib.Path(sys.argv[1]).resolve() not in where.parents, f"imported from the checkout: {where}"
for name in ("engine", "events", "hosts", "projections", "specs"):
    try:
        __import__(name)
    except ModuleNotFoundError:
        continue
    raise SystemExit(f"`import {name}` works: the wheel takes top-level names")
END
"$place/venv/bin/standby" --help >"$place/help.txt"
"$python" -m standby --help >"$place/module-help.txt"
grep -qi standby "$place/help.txt"
grep -qi standby "$place/module-help.txt"

say "running the tests against it"
# These read files of the checkout while they are imported.
"$python" -m pytest -q -n 2 -o pythonpath=. -o cache_dir="$place/cache" -m "not long and not checkout" tests \
    --ignore tests/mutants --ignore tests/readme --ignore tests/simulate/test_command.py
