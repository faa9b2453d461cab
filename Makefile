# `make demo` and `make test` are all a newcomer needs; the rest is for people who change things.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# what mining on cores needs is installed, and all that tests need
CORE := $(VENV)/.core
STAMP := $(VENV)/.installed

# Python keeps each module that it has compiled, whatever the caller's environment says. Otherwise every process compiles all
# that it imports again, and tests start thousands.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-all check docs browser environment tutorial constraints budget machine-code wheel gpu-test gpu-bench clean

# uv finds and unpacks the packages in a quarter of the time of pip, and compiles no module: most are never imported. It
# trusts whom the machine trusts, as pip does. What is left of an environment that was not finished is cleared first
environment: $(STAMP)  ## the pinned environment in .venv

PINNED = $(BIN)/uv pip install --quiet --system-certs --python $(BIN)/python -c constraints.txt

$(CORE): pyproject.toml setup.py constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 11) <= v < (3, 15) else \
		"Python 3.11 to 3.14 is needed, and $(PYTHON) is %d.%d; name another one, as in: make PYTHON=python3.12 demo" % v)'
	@echo "making an environment in $(VENV): 13 packages, 0.5 GB"
	@$(PYTHON) -m venv $(if $(wildcard $(CORE)),,--clear) $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt uv
	@$(PINNED) -e .
	@touch $@

$(STAMP): $(CORE)
	@echo "adding what tests and other front doors need to $(VENV): 2 GB"
	@$(PINNED) -e '.[dev]'
	@touch $@

demo: $(CORE)  ## mine a real graph and show how to read the result
	$(BIN)/bicliques demo --output demo-output

# one process more than cores, because tests wait, but not so many that they run out of memory; tests/spread.py says
# which tests stay together
PYTEST = $(BIN)/python -m pytest -n $$(($$(nproc) + 1)) --maxprocesses 4 --dist loadgroup

test: $(STAMP)  ## the suite without its exhaustive tests
	$(PYTEST) -m "not exhaustive"

test-all: $(STAMP)  ## the whole suite
	$(PYTEST)

browser:  ## Chromium for the tests of the report page, where it can be installed
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || { \
		[ "$$(id -u)" -eq 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null; \
	} || echo "no browser: its tests will be skipped"

check: $(STAMP)  ## format, lint, types, layers, images
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@if [ -x $(BIN)/hadolint ]; then $(BIN)/hadolint Dockerfile Dockerfile.cuda; else echo "no hadolint for this machine"; fi

docs: $(STAMP)  ## the documentation as a site in build/site; a warning or a dead link is an error
	$(BIN)/python -m sphinx --quiet --fail-on-warning --jobs auto -c docs . build/site
	$(BIN)/python -m tests.site build/site

tutorial: $(STAMP)  ## run docs/tutorial.ipynb and store what it shows
	$(BIN)/python -m tests.tutorial --write

constraints: $(STAMP)  ## pin again what pyproject.toml allows now
	$(BIN)/uv pip compile --quiet --universal --upgrade --python-version 3.11 --extra dev --extra dashboard --extra gpu \
		--no-header --no-annotate --output-file constraints.txt pyproject.toml

budget: $(STAMP)  ## measure the kernels again: registers, stack, spills, shared memory
	$(BIN)/python -m tests.kernels.resources

machine-code: $(STAMP)  ## compile the kernels for the wheel; needs no GPU
	$(BIN)/python -m bicliques.kernels.shipped

wheel: machine-code  ## the wheel in dist/, with machine code
	rm -rf build  # setuptools would take what an earlier build left there
	$(BIN)/python -m build --wheel --no-isolation

gpu-test:  ## on a machine with a CUDA device: engines, known graphs, compute-sanitizer
	tests/gpu/run.sh

gpu-bench:  ## there, too: times of both engines, written to benchmarks/
	PYTHONPATH=. $(PYTHON) -m benchmarks.gpu --record
	PYTHONPATH=. $(PYTHON) -m benchmarks.tables --write
	PYTHONPATH=. $(PYTHON) -m benchmarks.gpu_tables --write

clean:
	rm -rf $(VENV) demo-output build kernels/machine_code
