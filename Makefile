# `make up` starts everything, `make test` tests everything; both install what they need into .venv first.
SHELL := /bin/bash
PYTHON ?= python3
export GPUPOOL_PORT ?= 8080

BIN := .venv/bin
UV := .tools/bin/uv

.PHONY: up down restart run secrets test test-fast lint bench lock schema clean

up: .venv/runtime  ## start Airflow with gpupool at 127.0.0.1:8080
	@$(BIN)/python deploy/stack.py up

down: .venv/runtime  ## stop it; nothing is left running
	@$(BIN)/python deploy/stack.py down

restart: down up

run: .venv/runtime  ## a command in the stack's environment: make run CMD="gpupool devices"
	@$(BIN)/python deploy/stack.py run $(CMD)

secrets: .venv/runtime  ## passwords and keys for docker compose, in .secrets
	@$(BIN)/python deploy/stack.py secrets

test: .venv/dev  ## lint, types and the whole test suite (installs Debian packages when root)
	tests/install_packages
	$(MAKE) lint
	$(BIN)/pytest

test-fast: .venv/dev  ## the tests that start no service
	$(BIN)/pytest -m "not slow and not compose"

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/dev  ## every benchmark, one after the other
	@for file in benchmarks/[a-z]*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

lock: $(UV)  ## recompile the locks from pyproject.toml
	$(UV) pip compile --quiet --universal --no-header --no-annotate pyproject.toml -o requirements.txt
	$(UV) pip compile --quiet --universal --no-header --no-annotate --extra dev -c requirements.txt pyproject.toml -o requirements-dev.txt

schema: .venv/runtime
	$(BIN)/gpupool schema > include/pool.schema.json

clean: down
	rm -rf .venv .tools .airflow

# uv is fetched by pip into a folder of its own: it works where Debian's Python forbids other installs.
$(UV):
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --target .tools uv

.venv/runtime: requirements.txt pyproject.toml | $(UV)
	@test -d .venv || $(UV) venv --quiet --python $(PYTHON) .venv
	$(UV) pip install --quiet --python .venv -r requirements.txt
	$(UV) pip install --quiet --python .venv --no-deps --editable .
	@touch $@

.venv/dev: requirements-dev.txt .venv/runtime | $(UV)
	$(UV) pip install --quiet --python .venv -r requirements-dev.txt
	@touch $@
