# Needs GNU make, Python 3.11 or newer with its venv module, and Java 17 or newer. The rest is downloaded once.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

VENV := .venv
PYTHON := $(VENV)/bin/python
INSTALLED := $(VENV)/.installed

# Tried in this order; the first that runs and is new enough makes the virtual environment. Another one:
# make BASE_PYTHON=/opt/python/bin/python3 …
BASE_PYTHON ?= python3.11 python3.12 python3 python3.13
TESTS := $(wildcard tests/unit tests/golden tests/fuzz tests/spec tests/simulation tests/integration tests/faults)

include proto.mk

##@ Everything

.PHONY: demo
demo: $(INSTALLED)  ## A broker, a job, a million events, two kills, a proof. Options: make demo ARGS="--records 200000 --keep"
	@$(VENV)/bin/lockstep demo $(ARGS)

.PHONY: test
test: lint types  ## All that a change must pass: lint, types, unit, simulation, integration; stops at the first failure
	@$(PYTHON) -m pytest --maxfail=1 $(TESTS)

##@ Parts of it

.PHONY: lint
lint: $(INSTALLED)  ## ruff: rules and format
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .

.PHONY: types
types: $(INSTALLED)  ## mypy: strict in the cores
	@$(VENV)/bin/mypy

.PHONY: unit simulation integration
unit simulation integration: $(INSTALLED)  ## One kind of tests
	@$(PYTHON) -m pytest tests/$@

##@ The proof, at length: figures go to build/evidence, with RECORD=1 into docs/evidence

CYCLES ?=
SEED ?=
RECORDS ?= 20000000
PER_SECOND ?= 10000
MINUTES ?= 60
SCHEDULES ?= 500000
INPUTS ?= 1000000

.PHONY: faults
faults: $(INSTALLED)  ## Real parts: every scenario once; with CYCLES=100 so many random kills instead
	@$(PYTHON) -m tests.faults $(if $(CYCLES),--cycles $(CYCLES) --records $(RECORDS) --per-second $(PER_SECOND) $(if $(SEED),--seed $(SEED)),--all)

.PHONY: soak soak-simulation soak-fuzz soak-faults
soak: soak-simulation soak-fuzz soak-faults  ## Schedules, fuzzed inputs, and MINUTES=60 of load with faults
soak-simulation: $(INSTALLED)
	@$(PYTHON) -m tests.simulation.soak --schedules $(SCHEDULES)
soak-fuzz: $(INSTALLED)
	@$(PYTHON) -m tests.fuzz --inputs $(INPUTS)
soak-faults: $(INSTALLED)
	@$(PYTHON) -m tests.faults.soak --minutes $(MINUTES)

.PHONY: mutants
mutants: $(INSTALLED)  ## Put each seeded bug in, and say how many schedules it takes to find it
	@$(PYTHON) -m tests.simulation.mutants

.PHONY: spec
spec: $(INSTALLED)  ## The model of the protocol, explored exhaustively by spin
	@$(PYTHON) tools/spec.py

##@ Generated files

proto: $(INSTALLED)  ## The protobuf stubs, from proto/*.proto

.PHONY: docs
docs: $(INSTALLED)  ## docs/configuration.md, the state tables, what full runs found in docs/reliability.md
	@$(PYTHON) -m lockstep.config.document
	@$(PYTHON) tools/state_tables.py
	@$(PYTHON) tools/reliability.py

##@ The house

# Newer than pyproject.toml once everything that it asks for is installed.
$(INSTALLED): pyproject.toml
	@test -x $(PYTHON) || tools/make_venv.sh $(VENV) $(BASE_PYTHON)
	@echo "Installing Lockstep and what it needs into $(VENV) …"
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

.PHONY: clean
clean:  ## Remove what was built and what demos left; downloads stay in the caches
	@rm -rf build .demo .pytest_cache .mypy_cache .ruff_cache .hypothesis ./*.egg-info
	@find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +

.PHONY: clean-all
clean-all: clean  ## And the virtual environment
	@rm -rf $(VENV)

.PHONY: help
help:  ## This list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z -]+:.*## / {split($$1, names, ":"); printf "  make %-28s %s\n", names[1], $$2}' $(firstword $(MAKEFILE_LIST))
