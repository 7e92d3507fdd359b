# Every target is one line of `make` output; a test holds each target to having its help text.
.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
FUZZ_SECONDS ?= 30
STAMP := .venv/.installed
SEEDS ?= 10
JOBS ?= 2000

.PHONY: help install demo test dev check mutants fuzz chaos bench lock clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP) ## install everything into .venv from the lock file

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; try: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: $(STAMP) ## run every story against real servers and show what happened
	$(BIN)/sume-jobs demo

test: $(STAMP) ## run the test suite
	$(BIN)/python -m pytest

dev: $(STAMP) ## start all servers and processes, print every URL, stop with Ctrl-C
	$(BIN)/sume-jobs dev

check: $(STAMP) ## check format, lint, types and import rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

mutants: $(STAMP) ## break each promise in a copy of the code; a test must notice
	$(BIN)/python -m tests.mutants

chaos: $(STAMP) ## run the whole system under seeded faults (SEEDS=10 JOBS=2000 SEED=first CHAOS=--publish)
	$(BIN)/python -m tests.chaos --seeds $(SEEDS) --jobs $(JOBS) $(if $(SEED),--seed $(SEED)) $(CHAOS)

bench: $(STAMP) ## measure what it costs beside its limits (BENCH="receiver --pairs 3", BENCH=--publish)
	$(BIN)/python -m tests.bench $(BENCH)

fuzz: $(STAMP) ## generate misbehaviour for receiver, downloader and operator API, FUZZ_SECONDS=30 each
	FUZZ_SECONDS=$(FUZZ_SECONDS) $(BIN)/python -m pytest tests/fuzz tests/worker/test_download_fuzz.py

lock: ## rewrite the lock file from pyproject.toml (needs uv)
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--no-header --all-extras --output-file requirements.lock pyproject.toml

clean: ## remove .venv and every cache
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
