# Two promises: `make demo` and `make test` work from a bare clone with Python 3.11+, git and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-long lint types pytest specs bench bench-classify mutants wheel-test clean

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "standby needs Python 3.11 or newer; say make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip -c constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e . --group dev
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/standby demo

test: lint types pytest

lint: $(STAMP)
	$(BIN)/ruff check .  src/standby/__init__.py src/standby/__main__.py
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy
	$(BIN)/mypy specs tests/specs tests/packaging

pytest: $(STAMP)
	$(BIN)/pytest -n 2 -q -m "not long"

test-long: $(STAMP)
	STANDBY_TESTS=long $(BIN)/pytest -n 2 -q

specs: $(STAMP)
	$(BIN)/python -m specs.generate

bench: $(STAMP)
	$(BIN)/python -m bench.figures

bench-classify: $(STAMP)
	$(BIN)/python -m bench.classify

mutants: $(STAMP)
	$(BIN)/python -m tests.mutants

wheel-test: $(STAMP)
	sh tests/packaging/wheel.sh

clean:
	rm -rf $(VENV) build dist *.egg-info src/*.egg-info .mypy_cache .ruff_cache .pytest_cache
