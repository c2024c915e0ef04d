# Included by the Makefile. Regenerates the stubs below */stubs/ from proto/*.proto; the generator's version is
# pinned in pyproject.toml, so that the same sources give the same bytes everywhere.
PYTHON ?= .venv/bin/python

.PHONY: proto
proto:
	$(PYTHON) tools/generate_stubs.py
