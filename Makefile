# The two commands: `make bench` and `make test`. Everything is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# asv looks for the Python of its environments on PATH: this one first.
export PATH := $(CURDIR)/$(BIN):$(PATH)
# With NVCC=/path/to/nvcc that compiler is used, and PyPI's is not installed.
NVCC_WHEEL := $(if $(NVCC),,-r requirements/nvcc.txt)
# More arguments for asv run, for example ARGS="--bench TransposeInL2".
ARGS ?=
# For compare: two git revisions, and the machine if several measured both.
BASE ?= origin/main
HEAD ?= HEAD
MACHINE ?=

.PHONY: bench site screenshots compare test lint readme clean

# With a driver, PyCUDA and cuda-bindings come along: PyCUDA is built if there is no wheel of it.
$(VENV)/installed: pyproject.toml requirements/asv.txt requirements/environment.txt requirements/gpu.txt requirements/nvcc.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -r requirements/environment.txt -r requirements/asv.txt $(NVCC_WHEEL) --editable .
	if $(BIN)/python -c 'import ctypes; ctypes.CDLL("libcuda.so.1")' 2>/dev/null; then \
	  $(BIN)/python -m runner.pycuda_wheel && $(PIP) -r requirements/gpu.txt; fi
	touch $@

$(VENV)/tools: $(VENV)/installed requirements/dev.txt
	$(PIP) -r requirements/dev.txt
	touch $@

bench: $(VENV)/installed
	$(BIN)/python -m asv run --record-samples $(ARGS) HEAD^!; status=$$?; \
	$(BIN)/python -m asv publish && $(BIN)/python -m report.summary; exit $$status

# The published site, in html/: docs/site.md.
site: $(VENV)/installed
	$(BIN)/python -m asv publish

# Every page of it as a picture, from the results as they are: needs Node and Chromium.
screenshots: site tests/site/node_modules
	CHROMIUM=$$($(BIN)/python -c 'from tests.site import browser; print(browser.CHROMIUM)') \
	  node tests/site/screenshots.js html docs/screenshots

# Exit codes: docs/review.md.
compare: $(VENV)/installed
	@$(BIN)/python -m report.compare "$(BASE)" "$(HEAD)" $(if $(MACHINE),--machine "$(MACHINE)")

test: $(VENV)/tools
	$(BIN)/python -m pytest

# What the browser test needs besides Node and Chromium; without it that test is skipped.
tests/site/node_modules: tests/site/package-lock.json
	npm ci --ignore-scripts --no-audit --no-fund --prefix tests/site
	touch $@

lint: $(VENV)/tools
	$(BIN)/python -m ruff check
	$(BIN)/python -m ruff format --check
	$(BIN)/python -m mypy
	$(BIN)/python -m asv check --python=same

# Rewrites the README's table and picture from results/.
readme: $(VENV)/tools
	$(BIN)/python -m report.readme

clean:
	rm -rf $(VENV) .asv html
