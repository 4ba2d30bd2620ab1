# Everything here sets itself up: a fresh machine needs python3 and pip, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEVELOP := $(VENV)/.develop
unexport PYTHONDONTWRITEBYTECODE  # each process of the tests would compile all of them
PYTEST := $(BIN)/pytest -n 4 --dist loadfile --no-loadscope-reorder

LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	--upgrade --system-certs

UNIT := $(addprefix tests/,kernel store api identity $(addprefix test_,buckets.py decoding.py fairness.py \
	gate.py keys.py log.py money.py numbering.py settings.py values.py versions.py) contract/test_house.py)

ON_CLUSTER := $(addprefix tests/,cluster test_erasure.py api/test_events.py api/test_payments.py api/test_credit_notes.py \
	contract/test_same_answers.py webhooks/test_sender.py $(addprefix blackbox/test_,cursors.py revocation.py) \
	console/test_actions.py console/test_request_pages.py)
ON_CLUSTER_IN_FULL := $(addprefix tests/blackbox/test_,billing_races.py hostile_console.py)

.DEFAULT_GOAL := help
.PHONY: help run unit test cluster browser sure format lint types compiled coverage bench instructions statements depth screenshots migration former schemas examples openapi clients map settings dist sbom lock deploy clean

help:  ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 14

$(READY): pyproject.toml requirements/run.txt requirements/build.txt tools/setup.sh
	sh tools/setup.sh $(PYTHON) $(VENV) run build --project
	@touch $@

$(DEVELOP): pyproject.toml requirements/dev.txt tools/setup.sh
	sh tools/setup.sh $(PYTHON) $(VENV) dev --project
	@touch $@

run: $(READY)  ## serve the demo: two agencies on the embedded database
	$(BIN)/retainer demo

browser:
	@sh tools/programs.sh browser

deploy:
	@sh tools/programs.sh deploy

test: $(DEVELOP) browser deploy  ## run the tests, on PostgreSQL only those that depend on the database
	$(PYTEST)

unit: $(DEVELOP)  ## run the tests of rules, kernel and store on SQLite, without a server or a browser: one to two minutes
	RETAINER_TEST_LENGTH=unit $(BIN)/pytest -n 2 --dist loadfile $(UNIT)

cluster: $(DEVELOP)  ## run the tests of a Citus cluster: RETAINER_TEST_CLUSTER=host:port,port,port, the coordinator first
	@test -n "$$RETAINER_TEST_CLUSTER" || { echo "Set RETAINER_TEST_CLUSTER to host:port,port,port of a cluster."; exit 1; }
	$(BIN)/pytest -n 2 --dist loadfile $(ON_CLUSTER)
	RETAINER_TEST_LENGTH=full $(BIN)/pytest $(ON_CLUSTER_IN_FULL)

format: $(DEVELOP)  ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: $(DEVELOP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

compiled: $(DEVELOP)  # the tests, once for all processes of a run, each of which would compile them
	$(BIN)/pytest --collect-only -qq > /dev/null

types: $(DEVELOP)
	$(BIN)/mypy --cache-dir=/dev/null  # as on a clean clone: a cache once hid an error

coverage: $(DEVELOP) browser deploy
	$(BIN)/coverage erase
	RETAINER_TEST_LENGTH=$${RETAINER_TEST_LENGTH:-full} $(PYTEST) --cov --cov-report=term

sure: lint types coverage  ## check all that must hold before a push: format, types, every test, coverage

bench: $(DEVELOP)  ## measure the server against bench/bare.py; ON="--database postgresql" for the other database
	$(BIN)/python -m bench.load $(ON)
	$(BIN)/python -m bench.reports $(ON)

instructions: $(DEVELOP)  ## count the instructions of a request against bench/bare.py; needs valgrind
	$(BIN)/python -m bench.instructions

statements: $(DEVELOP)  ## write and show the statements and round trips to PostgreSQL of each operation
	$(BIN)/pytest -q tests/contract/test_statements.py --write-statements
	@expand -t 72,86 tests/contract/statements.tsv

depth: $(DEVELOP)  ## measure responses with 10,000 and with 1,000,000 time entries; ON as for bench
	$(BIN)/python -m bench.depth $(ON)

examples: $(DEVELOP)  ## record the examples of the reference again
	$(BIN)/pytest -q tests/test_examples.py --write-examples

screenshots: $(DEVELOP) browser  ## write screenshots of the console into docs/screenshots
	$(BIN)/python -m tools.screenshots

migration: $(DEVELOP)  ## write a new migration from the tables: make migration NAME="what changes"
	@$(BIN)/python -m tools.new_migration "$(NAME)"

former: $(DEVELOP) deploy  ## keep the demo of this commit for the tests of upgrades, after a landing that changes tables
	$(BIN)/python -m tools.release_database

schemas: $(DEVELOP)  ## write what each revision consists of, after a new migration
	$(BIN)/python -m tools.schemas

openapi: $(DEVELOP)  ## write openapi.json, which may only grow
	$(BIN)/python -m tools.openapi

clients: $(DEVELOP) browser  ## generate four clients from the OpenAPI document and test them; needs npm
	$(BIN)/python -m tools.clients

map: $(DEVELOP)  ## write docs/code-map.md from the modules
	$(BIN)/python -m tools.code_map

settings: $(DEVELOP)  ## write docs/settings.md from the declared settings
	$(BIN)/python -m tools.settings_page

dist:  ## build the wheel and the source distribution into dist/
	rm -rf dist
	sh tools/setup.sh $(PYTHON) $(VENV)-build release
	$(VENV)-build/bin/python -m build --no-isolation

sbom: $(DEVELOP)  ## write the list of the parts of a server, with their licences, into dist/
	sh tools/setup.sh $(PYTHON) $(VENV)-build release
	mkdir -p dist
	$(BIN)/python -m tools.sbom $(VENV)-build/bin/cyclonedx-py dist/retainer-sbom.json

lock: $(DEVELOP)  ## write requirements/ from pyproject.toml, with the newest versions that fit
	$(LOCK) pyproject.toml --all-extras --output-file requirements/run.txt
	$(LOCK) --group build --constraint requirements/run.txt --output-file requirements/build.txt
	$(LOCK) pyproject.toml --all-extras --group dev --output-file requirements/dev.txt
	$(LOCK) --group release --output-file requirements/release.txt
	$(LOCK) --group clients --output-file requirements/clients.txt

clean:  ## remove what make has created
	rm -rf $(VENV) $(VENV)-build data dist tests/browser/node_modules .coverage .coverage.* .mypy_cache .pytest_cache .ruff_cache .hypothesis
