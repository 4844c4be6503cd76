# foveate: `make demo` sets up and runs the whole path once; `make test` sets up and runs every test.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup demo test fast check lint format clean ablations

VENV ?= .venv
PYTHON ?= python3
PYTEST_ARGS ?=
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# Third-party corpora are never in the repository. Where none are named, the development folder beside it is used.
FOVEATE_DATA ?= $(abspath $(wildcard ../shared/data))
ifneq ($(FOVEATE_DATA),)
export FOVEATE_DATA
endif

# Nothing is downloaded at run time: weights and vocabularies come from installed packages.
export HF_HUB_OFFLINE := 1
export WANDB_MODE ?= offline

help:  ## what each target does
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## */  make \1\t/' | expand -t 16

$(READY): pyproject.toml constraints.txt scripts/setup.sh
	@PYTHON='$(PYTHON)' scripts/setup.sh '$(VENV)'
	@touch '$@'

setup: $(READY)  ## create the virtual environment, with everything in it (again only when its inputs change)

demo: $(READY)  ## train on synthetic chats, evaluate, export, pack one conversation without torch (minutes)
	@PATH="$(abspath $(BIN)):$$PATH" scripts/demo.sh

ablations: $(READY)  ## what each part is worth, with intervals (hours; resumes): docs/results/ablations.md
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python scripts/ablations.py

test: $(READY)  ## every test, the slow ones too
	$(BIN)/python -m pytest $(PYTEST_ARGS)

fast: $(READY)  ## the tests that take seconds
	$(BIN)/python -m pytest -m 'not slow' $(PYTEST_ARGS)

lint: $(READY)  ## ruff, pyright and the floors of the architecture
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/pyright --pythonpath '$(BIN)/python'

check: lint fast  ## what a change must pass before it is committed

format: $(READY)  ## let ruff fix and format the tree
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## remove the environment, runs and caches
	rm -rf .venv .venv-* runs wandb .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
