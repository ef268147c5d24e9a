# Springtide: `make` lists the targets.

PYTHON ?= python3
VENV := .venv
STAMP := $(VENV)/.setup-done
PYTEST := $(VENV)/bin/python -m pytest
SIDE_BY_SIDE := -n 2 --dist loadgroup --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help setup ready kafka postgres prometheus flink demo lint api test test-all chaos nemesis clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## Create .venv with pinned dependencies, and Java if there is none

$(STAMP): pyproject.toml constraints.txt build-constraints.txt scripts/setup.sh
	@PYTHON="$(PYTHON)" VENV="$(VENV)" bash scripts/setup.sh
	@touch $@

kafka: setup ## Fetch Spark's Kafka connector and a Kafka broker into .kafka
	@$(VENV)/bin/springtide kafka fetch

demo: setup ## Run the demo
	$(VENV)/bin/springtide demo

lint: setup ## Check style, types and import directions
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check --quiet .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

api: setup ## Write docs/api.md from docstrings
	$(VENV)/bin/python scripts/api_reference.py

postgres: ## Find a PostgreSQL server for the tests, or install one by apt
	@bash scripts/postgres.sh

prometheus: ## Find Prometheus for the tests, or unpack its package into .prometheus
	@bash scripts/prometheus.sh

flink: setup ## Fetch Flink into .flink, to compete in `springtide bench nexmark`
	@VENV="$(VENV)" bash scripts/flink.sh

# What tests need, side by side.
ready: setup
	@$(MAKE) --no-print-directory -j4 --output-sync=target lint kafka postgres prometheus

test: ready ## Lint, then run all tests but the slow ones
	$(PYTEST) $(SIDE_BY_SIDE) -m "not slow"

test-all: ready ## Lint, then run every test
	$(PYTEST) $(SIDE_BY_SIDE)

chaos: kafka postgres ## Run the tests that kill, stall and corrupt
	$(PYTEST) -m chaos

nemesis: setup ## Strike an app at random for FOR=600 seconds, from a SEED or a new one; APP=counts or meetings
	SPRINGTIDE_NEMESIS_SECONDS=$(or $(FOR),600) SPRINGTIDE_NEMESIS_SEED=$(SEED) SPRINGTIDE_NEMESIS_APP=$(APP) $(PYTEST) -s tests/chaos/test_nemesis.py -k long

clean: ## Remove .venv, caches and what Spark left behind
	rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	rm -rf .kafka .prometheus .flink derby.log metastore_db spark-warehouse
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
