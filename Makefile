# Needs GNU make, Python 3.11 or newer with its venv module, and Java 17 to 22. The rest is downloaded once.

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
COMMIT ?= $(shell git rev-parse HEAD)
TESTS := $(wildcard tests/unit tests/golden tests/fuzz tests/spec tests/simulation tests/seeded tests/conformance tests/integration tests/faults)

# Processes that run tests: on two cores, two compute or start components while one waits for its components.
PROCESSES ?= 3

# Options of all test commands: BUSY=8 runs busy loops at the same time, PROFILE=1 prints where the time went,
# RECORD=1 keeps the times (tests/suite/took.json, docs/evidence/suite.json).
BUSY ?= 0
PROFILE ?=
PYTEST = $(PYTHON) -m pytest -p tests.suite.plugin -n $(PROCESSES) --busy $(BUSY) $(if $(PROFILE),--profile)
CHECK_TIER := --tier check
TEST_TIER := --tier check --tier test
ALL_TIERS := --tier check --tier test --tier all
PREPARED := --before-parts "$(VENV)/bin/lockstep prepare --quiet"
TYPES := --beside $(VENV)/bin/mypy

# Where it is set, each of the many Python processes compiles all of its modules anew.
unexport PYTHONDONTWRITEBYTECODE

include proto.mk

##@ Everything

.PHONY: demo demo-cdc
demo: $(INSTALLED)  ## A broker, a job, a million events, two kills, a proof. Options: make demo ARGS="--records 200000 --keep"
	@$(VENV)/bin/lockstep demo $(ARGS)
demo-cdc: $(INSTALLED)  ## Debezium's change events: upserts, deletes, a compaction, a kill; every row compared, one row's history
	@$(VENV)/bin/lockstep demo --cdc $(ARGS)

##@ Tests

.PHONY: check test test-all test-slice nightly
check: lint  ## Under a minute: lint, types, consistency, and the unit tests of the packages that changed
	@$(PYTHON) -m tools.proofs --brief
	@$(PYTEST) $(CHECK_TIER) --changed --stop-after 40 --maxfail 20 $(TYPES) tests/unit
test: lint  ## Ten minutes: what every change has to pass. It runs a test for each seeded bug
	@$(PYTEST) $(TEST_TIER) --maxfail 20 --record-as test $(PREPARED) $(TYPES) $(TESTS)
test-all: lint  ## An hour: every test, to the end, with the slowest ones. What resolves an issue has to pass it
	@$(PYTEST) $(ALL_TIERS) --max-worker-restart 100 --profile --record-as all $(PREPARED) $(TYPES) $(TESTS)
test-slice: $(INSTALLED)  ## One eighth of the tests that `make test` does not run, chosen by COMMIT; 25 minutes at most
	@$(PYTEST) --tier all --slice $(COMMIT) --stop-after 1500 --maxfail 20 $(PREPARED) $(TESTS)
nightly: $(INSTALLED)  ## Hours: the long proofs, and speed; .venv/bin/python -m tests.nightly --list
	@$(PYTHON) -m tests.nightly

##@ Parts of it

.PHONY: lint
lint: $(INSTALLED)  ## ruff: rules and format; rustfmt, where it is
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@! cargo fmt --version >/dev/null 2>&1 || cargo fmt --manifest-path native/Cargo.toml --check

.PHONY: types
types: $(INSTALLED)  ## mypy: strict, everywhere
	@$(VENV)/bin/mypy

.PHONY: unit simulation conformance integration
unit simulation conformance integration: $(INSTALLED)  ## One kind of tests
	@$(PYTHON) -m pytest tests/$@

.PHONY: minio
minio: $(INSTALLED)  ## What is tested of S3, its lock and tables there, on MinIO as well: needs Go, which builds it once
	@LOCKSTEP_S3_SERVER=minio $(PYTHON) -m pytest $(filter-out %_roles.py,$(wildcard tests/conformance/test_object*.py)) \
	  tests/conformance/test_places.py tests/integration/test_lock_client.py \
	  $(filter-out %_memory.py %_many_objects.py %_validate.py %_roles.py %_encryption.py,$(wildcard tests/integration/test_s3_*.py))

##@ The proof, at length: figures go to build/evidence, with RECORD=1 into docs/evidence

CYCLES ?=
SEED ?=
RECORDS ?= 20000000
PER_SECOND ?= 10000
MINUTES ?= 60
SCHEDULES ?= 500000
INPUTS ?= 1000000
SECONDS_EACH ?= 600

.PHONY: faults
faults: $(INSTALLED)  ## Real parts: every scenario once, with STORE=s3 (hdfs, gs, azure) those of tables there; with CYCLES=100 so many random kills instead
	@$(PYTHON) -m tests.faults $(if $(CYCLES),--cycles $(CYCLES) --records $(RECORDS) --per-second $(PER_SECOND) $(if $(SEED),--seed $(SEED)),--all) $(if $(STORE),--store $(STORE))

.PHONY: soak soak-simulation soak-fuzz soak-native soak-faults
soak: soak-simulation soak-fuzz soak-faults  ## Schedules, fuzzed inputs, and MINUTES=60 of load with faults
soak-simulation: $(INSTALLED)
	@$(PYTHON) -m tests.simulation.soak --schedules $(SCHEDULES)
soak-fuzz: $(INSTALLED)
	@$(PYTHON) -m tests.fuzz --inputs $(INPUTS)
soak-native: $(INSTALLED)  ## The native module's decoders, fuzzed SECONDS_EACH=600 with AddressSanitizer; needs cargo
	@$(PYTHON) -m tests.fuzz.native --seconds $(SECONDS_EACH)
soak-faults: $(INSTALLED)
	@$(PYTHON) -m tests.faults.soak --minutes $(MINUTES)

.PHONY: mutants
mutants: $(INSTALLED)  ## Put each seeded bug in and find it; TIER=test: by the tests that `make test` runs, alone
	@status=0; for bugs in simulation.mutants seeded; do \
	  $(PYTHON) -m tests.$$bugs $(if $(TIER),--tier $(TIER)) || status=1; \
	done; exit $$status

.PHONY: spec
spec: $(INSTALLED)  ## The model of the protocol, explored exhaustively by spin
	@$(PYTHON) tools/spec.py

##@ Speed: figures go to build/evidence, with RECORD=1 into docs/evidence

WORKLOADS ?= narrow wide tiny skewed partitions-1 partitions-24 partitions-1000
RIVALS ?=
ROUNDS ?= 3
LATENCY_MS ?= 20

.PHONY: bench bench-cold bench-intervals bench-workers bench-freshness bench-commits bench-stall bench-rejects bench-upserts bench-s3 bench-hdfs bench-page bench-native bench-sizes bench-picture
bench: $(INSTALLED)  ## Sustained rates side by side: make bench [WORKLOADS="narrow wide"] [RIVALS="lockstep plain"] [ARGS="--records 4000000"]
	@status=0; for workload in $(WORKLOADS); do \
	  $(PYTHON) -m bench --workload $$workload $(foreach rival,$(RIVALS),--rival $(rival)) --rounds $(ROUNDS) $(ARGS) || status=1; \
	done; $(PYTHON) -m bench.picture; exit $$status
bench-cold: $(INSTALLED)  ## From the job's start to 4 million records committed
	@$(PYTHON) -m bench --label cold --records 4000000 --rival lockstep --rival streaming --rival iceberg-cold --rounds $(ROUNDS) $(ARGS)
bench-intervals: $(INSTALLED)  ## The same load committed every 2 s and every 60 s; 60 s need a long one
	@$(PYTHON) -m bench --label intervals --records 120000000 --rival lockstep@2s --rival lockstep@60s --set transaction.max_bytes=0B --rounds $(ROUNDS) $(ARGS)
bench-workers: $(INSTALLED)  ## With 1, 2 and 4 workers, and on a standalone cluster of two worker processes
	@$(PYTHON) -m bench --label workers --rival lockstep-workers@1 --rival lockstep-workers@2 --rival lockstep-workers@4 --rival lockstep-cluster --rounds $(ROUNDS) $(ARGS)
bench-freshness: $(INSTALLED)  ## From produced to visible: 50,000 records a second, a commit each second
	@$(PYTHON) -m bench.freshness --rounds $(ROUNDS) $(ARGS)
bench-commits: $(INSTALLED)  ## How long a commit takes, at the 10th and at the 1,000th of a table, and with 100,000 files
	@$(PYTHON) -m bench.commits $(ARGS)
	@$(PYTHON) -m bench.commits --workload files $(ARGS)
bench-stall: $(INSTALLED)  ## Memory and recovery where the table takes no commit for a minute, under full load
	@$(PYTHON) -m bench.stall $(ARGS)
bench-rejects: $(INSTALLED)  ## A flood of bad records through one worker of 512 MB: text, broken JSON, and JSON of other types
	@for kind in text broken mistyped; do $(PYTHON) -m bench.rejects --kind $$kind $(ARGS); done
bench-upserts: $(INSTALLED)  ## Upserts: against Structured Streaming, our appends, and while compactions run; queries of both tables
	@$(PYTHON) -m bench --workload upserts --rival lockstep --rival streaming@1000000 --rival streaming@2000000 --rival streaming@4000000 --rounds $(ROUNDS) $(ARGS)
	@$(PYTHON) -m bench --workload upserts --label compacting --records 32000000 --rival lockstep --rival lockstep-append --rival lockstep-compacting --rounds $(ROUNDS) $(ARGS)
	@$(PYTHON) -m bench.queries
bench-s3: $(INSTALLED)  ## The table on an S3 server, near and LATENCY_MS=20 far: rates in turns with a folder's, commits, the proxy alone
	@$(PYTHON) -m bench.latency --latency-ms $(LATENCY_MS)
	@$(PYTHON) -m bench --workload narrow --label s3 --latency-ms $(LATENCY_MS) --rival lockstep --rival lockstep-s3 --rival lockstep-s3-far --rival streaming-s3 --rival streaming-s3-far --rival iceberg-warm-s3 --rival iceberg-warm-s3-far --rounds $(ROUNDS) $(ARGS)
	@$(PYTHON) -m bench --workload upserts --label s3 --latency-ms $(LATENCY_MS) --rival lockstep --rival lockstep-s3 --rival lockstep-s3-far --rival streaming-s3@1000000 --rival streaming-s3@4000000 --rival streaming-s3-far@4000000 --rounds $(ROUNDS) $(ARGS)
	@$(PYTHON) -m bench.commits --store s3
	@$(PYTHON) -m bench.commits --store s3 --latency-ms $(LATENCY_MS)
bench-hdfs: $(INSTALLED)  ## The table on an HDFS: rates in turns with a folder's, and commits
	@$(PYTHON) -m bench --workload narrow --label hdfs --rival lockstep --rival lockstep-hdfs --rival streaming-hdfs --rounds $(ROUNDS) $(ARGS)
	@$(PYTHON) -m bench --workload upserts --label hdfs --rival lockstep --rival lockstep-hdfs --rounds $(ROUNDS) $(ARGS)
	@$(PYTHON) -m bench.commits --store hdfs
bench-page: $(INSTALLED)  ## With the page open and scraped each 5 s, and without a page, in turns
	@$(PYTHON) -m bench --workload narrow --label page --rival lockstep-page --rival lockstep-no-page --rounds $(ROUNDS) $(ARGS)
bench-sizes: $(INSTALLED)  ## Small files put together beside the commits: what is left of them, queries, and rates with and without
	@$(PYTHON) -m bench.sizes $(ARGS)
	@$(PYTHON) -m bench --workload narrow --label sizes --records 60000000 --rival lockstep@10s --rival lockstep-clustering@10s --rounds $(ROUNDS) $(ARGS)
bench-native: $(INSTALLED)  ## With the native decoder of JSON and without, in turns, narrow and wide
	@for workload in narrow wide; do \
	  $(PYTHON) -m bench --workload $$workload --label native --rival lockstep --rival lockstep-no-native --rounds $(ROUNDS) $(ARGS); \
	done
bench-picture: $(INSTALLED)  ## The picture anew, from the figures that are there
	@$(PYTHON) -m bench.picture

##@ Generated files

proto: $(INSTALLED)  ## The protobuf stubs, from proto/*.proto

.PHONY: docs
docs: $(INSTALLED)  ## docs/configuration.md, the state tables, what full runs found in docs/reliability.md, docs/benchmarks.md, README's four figures, docs/metrics.md, ops/grafana.json
	@$(PYTHON) -m lockstep.config.document
	@$(PYTHON) tools/state_tables.py
	@$(PYTHON) tools/reliability.py
	@$(PYTHON) tools/scale.py
	@$(PYTHON) tools/benchmarks.py
	@$(PYTHON) tools/suite_times.py
	@$(PYTHON) -m tools.suite_numbers
	@$(PYTHON) tools/metrics.py
	@$(PYTHON) tools/dashboard.py

.PHONY: picture
picture: $(INSTALLED)  ## docs/demo.svg: the demo, played, as its terminal showed it
	@$(PYTHON) -m tools.demo_picture

.PHONY: page-pictures
page-pictures: $(INSTALLED)  ## docs/page-light.png, docs/page-dark.png: the page of a demo's run, in a browser
	@$(PYTHON) -m tools.page_pictures

##@ The house

# Newer than these once everything that they ask for is installed.
$(INSTALLED): pyproject.toml participant/source/_fetcher.c native/Cargo.toml native/Cargo.lock $(wildcard native/src/*.rs native/src/*/*.rs)
	@test -x $(PYTHON) || tools/make_venv.sh $(VENV) $(BASE_PYTHON)
	@echo "Installing Lockstep and what it needs into $(VENV): Spark alone is 300 MB, so it takes a minute or two …"
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@compgen -G 'participant/records/_native*.so' >/dev/null || echo "Without cargo (Rust), or where it fails," \
	  "records are decoded many times slower, to the same rows: $(PYTHON) -m pip install --verbose --editable . says why."
	@touch $@

.PHONY: wheel
wheel: $(INSTALLED)  ## build/wheel: Lockstep with what is compiled of it, for machines like this one
	@$(PYTHON) -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir build/wheel .
	@ls build/wheel/*.whl

.PHONY: clean
clean:  ## Remove what was built and what demos left; downloads stay in the caches
	@rm -rf build native/target .demo .pytest_cache .mypy_cache .ruff_cache .hypothesis ./*.egg-info
	@find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +

.PHONY: clean-all
clean-all: clean  ## And the virtual environment
	@rm -rf $(VENV)

.PHONY: help
help:  ## This list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9 -]+:.*## / {split($$1, names, ":"); printf "  make %-28s %s\n", names[1], $$2}' $(firstword $(MAKEFILE_LIST))
