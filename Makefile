# The two commands that matter: `make demo` and `make test`. Both set themselves up.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Packages are kept between fresh checkouts where pip's own cache is; nothing here depends on it.
PIP := $(BIN)/python -m pip --disable-pip-version-check

LOCK := --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
  --no-annotate --no-header --quiet

.PHONY: help setup demo demo-vllm action test check lint unit integration browser container vllm \
  nightly zoo lint-environment browser-environment vllm-environment container-environment images \
  bench lock clean

help: ## list what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 24

setup: $(READY) ## make the virtual environment, with everything pinned

$(READY): requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; name one with: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(PIP) install --quiet --require-hashes -r requirements/dev.txt
	$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(READY) ## the whole pipeline against a stand-in: once healthy, once broken (no GPU, no network)
	$(BIN)/mrcr demo --output-dir mrcr-demo/healthy
	@echo
	@echo "The same with a server that forgets what lies further back; it must fail:"
	@$(BIN)/mrcr demo --break window --output-dir mrcr-demo/broken; test $$? -eq 1

demo-vllm: $(READY) vllm-environment ## the same pair on real vLLM on this machine's CPU (a few minutes)
	@tests/vllm/demo.sh $(BIN)

action: $(READY) container-environment ## the Action, run as a runner would: outputs, summary, annotations; ARGS="--with NAME=VALUE …" (root, Debian)
	$(BIN)/python -m tests.container.run_action $(ARGS)

test: check lint-environment browser-environment container-environment vllm-environment ## everything but the nightly tests: what CI runs
	$(BIN)/pytest tests/unit tests/integration tests/browser tests/lint tests/container tests/vllm

check: $(READY) ## lint and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/check-jsonschema --schemafile configs/mrcr.schema.json configs/*.yaml

lint: $(READY) lint-environment ## action.yml, workflows, Dockerfile, scripts, links, readers of JUnit
	$(BIN)/pytest tests/lint

unit: $(READY) ## pure tests, in seconds
	$(BIN)/pytest tests/unit

integration: $(READY) ## real processes: the stand-in server, its faults, the command line
	$(BIN)/pytest tests/integration

browser: $(READY) browser-environment ## the HTML report in a real browser (Chromium, or root on Debian)
	$(BIN)/pytest tests/browser

container: $(READY) container-environment ## the Action in a real container engine, as a runner runs it (root, Debian)
	$(BIN)/pytest tests/container

vllm: $(READY) vllm-environment ## real vLLM on the CPU
	$(BIN)/pytest tests/vllm

nightly: $(READY) vllm-environment ## the long tests: more kinds of healthy servers, longer prompts (half an hour)
	$(BIN)/pytest -m nightly tests

zoo: $(READY) vllm-environment ## which plan of asks sees which fault of real vLLM: the table of docs/detection.md; ARGS="NAME… --plan standard" (an hour)
	$(BIN)/python -m tests.zoo $(ARGS)

lint-environment: $(READY) ## install what the linters need from npm into a cache, unless it is there (15 seconds)
	@tests/lint/environment/install.sh > /dev/null

browser-environment: ## install a Chromium, unless there is one (half a minute)
	@tests/browser/environment/install.sh > /dev/null

container-environment: $(READY) ## install a container engine and make a base image, unless they are there (1 to 3 minutes)
	@tests/container/environment/install.sh > /dev/null

vllm-environment: ## install real vLLM for CPUs into a cache, unless it is there (1 to 3 minutes)
	@tests/vllm/environment/install.sh > /dev/null

images: $(READY) browser-environment ## the pictures of report and summary in docs/images
	$(BIN)/python -m tests.browser.images

bench: $(READY) ## the measurements behind the figures in the documentation (minutes; 5 GB in .cache)
	$(BIN)/python benchmarks/start.py
	$(BIN)/python benchmarks/tokens.py
	$(BIN)/python benchmarks/synthetic.py
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/probe.py
	$(BIN)/python benchmarks/report.py
	-$(BIN)/python benchmarks/data.py .cache/benchmark --plan

lock: ## pin the newest versions again (needs uv)
	uv pip compile pyproject.toml requirements/dev.in $(LOCK) --upgrade --output-file requirements/dev.txt
	uv pip compile pyproject.toml --constraint requirements/dev.txt $(LOCK) --output-file requirements/image.txt
	uv pip compile requirements/build.in --constraint requirements/dev.txt $(LOCK) --output-file requirements/build.txt

clean: ## remove what was made here
	rm -rf $(VENV) mrcr-demo mrcr-results mrcr-data rows .mypy_cache .ruff_cache .pytest_cache .hypothesis
