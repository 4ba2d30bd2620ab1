# Everything here sets itself up: a fresh machine needs python3 and pip, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help run test sure format lint types coverage bench instructions depth migration clean

help:  ## list what can be made
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 12

$(READY): pyproject.toml tools/setup.sh
	sh tools/setup.sh $(PYTHON) $(VENV)
	@touch $@

run: $(READY)  ## serve the demo: two lively agencies on the embedded database
	$(BIN)/retainer demo

test: $(READY)  ## run all tests
	$(BIN)/pytest -n 2

format: $(READY)  ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy

coverage: $(READY)
	$(BIN)/coverage erase
	$(BIN)/pytest -n 2 --cov --cov-report=term

sure: lint types coverage  ## all that must hold before a push: format, lint, types, tests, coverage

bench: $(READY)  ## measure the server against bench/bare.py
	$(BIN)/python bench/load.py
	$(BIN)/python bench/reports.py

instructions: $(READY)  ## count the instructions of a request against bench/bare.py; needs valgrind
	$(BIN)/python bench/instructions.py

depth: $(READY)  ## measure how answers slow down from 10,000 to 1,000,000 time entries
	$(BIN)/python bench/depth.py

migration: $(READY)  ## write a new migration from the tables: make migration NAME="what changes"
	$(BIN)/python tools/new_migration.py "$(NAME)"

clean:  ## remove what make has made
	rm -rf $(VENV) data dist .coverage .coverage.* .mypy_cache .pytest_cache .ruff_cache .hypothesis
