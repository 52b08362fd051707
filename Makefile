# The habits of the project. Every target installs what it needs into this clone first.
.DEFAULT_GOAL := help
.PHONY: help install demo up test test-faults lint types crds docs bench kube-tools test-kube clean
ARGS ?=
ONLY ?=
BIN := .venv/bin

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: ## everything the project needs, into this clone
	@sh tools/bootstrap.sh

demo: install ## the whole platform and real studies on it; ARGS=--once ends when they have
	@$(BIN)/gryvia demo $(ARGS)

up: install ## the platform without the demo's objects
	@$(BIN)/gryvia up $(ARGS)

test: install ## all tests, a file at a time on each core (at most four)
	@$(BIN)/pytest -n auto --maxprocesses 4 --dist loadfile $(ARGS)

test-faults: install kube-tools ## the long fault campaigns (three quarters of an hour): simulation, replicas, kills, outages, full disks
	@GRYVIA_FAULTS=1 $(BIN)/pytest tests/simulation tests/faults $(ARGS)

lint: install ## style, import rules, module sizes, each service installed alone
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python tools/check_modules.py
	@$(BIN)/python tools/check_alone.py

types: install ## strict types
	@$(BIN)/mypy libs/common/src libs/devcluster/src libs/models/src libs/pipelines/src libs/report/src libs/search/src services/*/src cli/src bench tools

crds: install ## CRDs and the reference pages of the kinds, from the models; ARGS=--check only compares
	@$(BIN)/python -m gryvia_common.kinds.generate $(ARGS)

docs: install ## whatever is generated: CRDs, pages of the kinds and events, what each service may do; ARGS=--check only compares
	@$(BIN)/python -m gryvia_common.kinds.generate $(ARGS)
	@$(BIN)/python -m gryvia_common.bus.generate $(ARGS)
	@$(BIN)/python tools/generate_access.py $(ARGS)
	@$(BIN)/python -m tools.generate_admission $(ARGS)

bench: install ## one JSON object a line for every measure; ONLY=name runs one
	@$(BIN)/python -m bench $(ONLY)

kube-tools: ## etcd and the Kubernetes control plane, built from their Go modules (minutes once, then nothing)
	@sh tools/kube_tools.sh

test-kube: install kube-tools ## the conformance tests and the services on a real API server
	@GRYVIA_TEST_KUBE=1 $(BIN)/pytest tests/conformance tests/kube tests/access/test_access_real_cluster.py $(ARGS)

clean: ## what was installed and what a platform left
	rm -rf .venv .tools .gryvia
