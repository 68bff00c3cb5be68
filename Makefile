# Two commands set everything up on a fresh machine with Python >= 3.11: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test check eval bench mcp-conformance clean
demo: $(VENV)/.installed
	@CDA_HOME=.cda $(BIN)/cda ask --request docs/examples/cgm-2024-03-15.json --versus 2025-01-20
	@CDA_HOME=.cda $(BIN)/cda ask --request docs/examples/no-policy.json

test: $(VENV)/.dev-installed check
	$(BIN)/python -m pytest -n auto tests

check: $(VENV)/.dev-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

eval: $(VENV)/.dev-installed
	@CDA_HOME=.cda $(BIN)/cda eval --diff

bench: $(VENV)/.dev-installed
	$(BIN)/python -m evals.benchmarks

# The public conformance runner against the claims server; fetches the runner from npm once.
mcp-conformance: $(VENV)/.dev-installed
	$(BIN)/python tests/integration/mcp_conformance/run.py

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "cda needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(VENV)/.dev-installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[all,dev]'
	@touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) .cda .coverage .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
