# `make check`: install into .venv and check the shipped models. `make test`: the same, then the fast tests.
PYTHON ?= python3
BIN := .venv/bin
TOGETHER := --numprocesses 2 --dist loadfile

.PHONY: check test install lint full wheel clean

check: install
	$(BIN)/dra-spec check

test: check
	$(BIN)/pytest $(TOGETHER) -m "not full and not nightly"

full: install
	$(BIN)/pytest $(TOGETHER) -m "not nightly"

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

wheel: install
	$(BIN)/pip install --quiet --constraint constraints.txt build
	$(BIN)/python -m build --wheel

install: .venv/installed

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[test]"
	$(BIN)/python -m compileall -q dra_spec  # as pip does where a package is not editable
	touch $@

clean:
	rm -rf .venv dist build
