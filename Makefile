# The two commands of a fresh machine: `make up` and `make test`. Everything else is a part of them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TRIMTAB_DATA ?= .trimtab
SCHEMATHESIS := .venv-schemathesis
EXAMPLES ?= 2

.DEFAULT_GOAL := help
.PHONY: help setup up test unit lint format bench bench-quick docs go-provider cluster test-cluster cluster-systems cluster-others test-dataplane test-slow test-tofu test-openapi packages clean

help: ## what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-15s %s\n", $$1, $$2}'

setup: $(VENV)/.done ## the virtual environment, with everything in it

$(VENV)/.done: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; set PYTHON=" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[all]' --group dev
	@touch $@

up: setup ## run the control plane on this machine
	$(BIN)/trimtab up --data-dir $(TRIMTAB_DATA)

test: setup packages go-provider lint unit ## lint, then every fast test

unit: setup
	TRIMTAB_REQUIRE_POSTGRES=1 $(BIN)/pytest -n 2 --dist loadfile --durations 40 -m "not cluster and not dataplane and not slow"

lint: setup ## ruff, mypy, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup ## let ruff mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

packages: setup ## the programs that tests use and pip cannot bring: kubectl, PostgreSQL, snmpd, sshd, …
	@scripts/packages.sh

go-provider: ## build a Terraform provider in Go, of protocol 5, to live with (once, outside the checkout)
	@scripts/go_provider.sh

cluster: ## build a real kube-apiserver and etcd to compare with (once, outside the checkout)
	@scripts/cluster.sh

test-cluster: setup packages cluster ## the tests that need the real kube-apiserver, the differential test among them
	@$(MAKE) --no-print-directory --jobs 2 --keep-going cluster-systems cluster-others

# two at a time, each with a server of its own: what tests leave there is for all clients of it, so within each the order stays
cluster-systems cluster-others: export TRIMTAB_REQUIRE_CLUSTER = 1
cluster-systems cluster-others: export TRIMTAB_DIFFERENTIAL_EXAMPLES = 50
cluster-systems:
	$(BIN)/pytest -m cluster --durations 20 tests/systems
cluster-others:
	$(BIN)/pytest -m cluster --durations 20 --ignore tests/systems

test-slow: setup packages go-provider ## hostile input, faults, kills at random moments, every kind by Terraform
	TRIMTAB_REQUIRE_POSTGRES=1 $(BIN)/pytest -n 2 --dist loadfile --durations 20 -m "slow and not cluster"

test-dataplane: setup packages ## whole releases on real Envoy and Prometheus, under load
	$(BIN)/pytest -m dataplane

test-tofu: setup packages go-provider ## what is driven by Terraform elsewhere, on OpenTofu
	TRIMTAB_TERRAFORM=$$(scripts/packages.sh tofu) && export TRIMTAB_TERRAFORM && \
	$(BIN)/pytest -n 2 --dist loadfile tests/terraform tests/docs/test_terraform.py -m "not cluster"

test-openapi: setup packages ## Schemathesis on our own OpenAPI, as nobody, with rights in one namespace, as administrator
	test -x $(SCHEMATHESIS)/bin/schemathesis || { $(PYTHON) -m venv $(SCHEMATHESIS) && $(SCHEMATHESIS)/bin/pip install --quiet schemathesis==4.32.5; }
	$(BIN)/python -m tests.fuzz.openapi $(SCHEMATHESIS)/bin/schemathesis --examples $(EXAMPLES)

docs: setup packages ## the pictures and the generated parts of the documentation
	$(BIN)/python scripts/pictures.py
	$(BIN)/python scripts/reference.py
	$(BIN)/python scripts/terraform_types.py
	$(BIN)/python -m tests.differential.page

bench: setup packages cluster ## the benchmarks, beside their peers
	$(BIN)/python bench/server.py
	$(BIN)/python bench/runtime.py
	$(BIN)/python bench/discovery.py
	$(BIN)/python bench/images.py
	$(BIN)/python bench/rest.py
	$(BIN)/python bench/delivery.py
	$(BIN)/python bench/hub.py
	$(BIN)/python bench/terraform.py
	$(BIN)/python bench/load.py
	$(BIN)/python -m bench.envtest
	$(BIN)/python bench/cel.py

bench-quick: setup packages cluster ## a tenth of the load: that the benchmarks work
	$(BIN)/python bench/server.py --quick
	$(BIN)/python bench/runtime.py --quick
	$(BIN)/python bench/discovery.py --quick
	$(BIN)/python bench/images.py --quick
	$(BIN)/python bench/rest.py --quick
	$(BIN)/python bench/delivery.py --quick
	$(BIN)/python bench/hub.py --quick
	$(BIN)/python bench/terraform.py --quick
	$(BIN)/python bench/load.py --quick
	$(BIN)/python bench/cel.py

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) $(SCHEMATHESIS) .mypy_cache .ruff_cache .pytest_cache .hypothesis
