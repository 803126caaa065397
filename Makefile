# The two commands: `make bench` and `make test`. Everything is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Python compiles what it imports; most of what is installed is never imported.
PIP := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check
# The checkout itself, by the setuptools that is there. It imports what other packages install, so it comes after them.
CHECKOUT := $(PIP) --no-index --no-deps --no-build-isolation --editable . --editable ./ptxcount --editable ./kernelwatch
# A run's processes import the same: without bytecode each of them compiles all of it.
unexport PYTHONDONTWRITEBYTECODE
# asv looks for the Python of its environments on PATH: this one first.
export PATH := $(CURDIR)/$(BIN):$(PATH)
# With NVCC=/path/to/nvcc that compiler is used, and PyPI's is not installed.
NVCC_WHEEL := $(if $(NVCC),,-r requirements/nvcc.txt)
# MEASURE_ALL=1: nothing is taken from earlier commits. docs/method.md.
MEASURE_ALL ?=
export KERNELWATCH_MEASURE_ALL := $(MEASURE_ALL)
# More arguments for asv run, for example ARGS="--bench TransposeInL2", or for compare.
ARGS ?=
# For measure and compare: two git revisions. For compare: the machine, if several measured both.
BASE ?= origin/main
HEAD ?= HEAD
MACHINE ?=
# For bisect: words of the number, a commit before the change, one after it.
METRIC ?=
GOOD ?=
BAD ?= HEAD
# For measure: the commits that are interleaved: their code shares a process. Empty: each commit has its own process.
INTERLEAVED ?= $(BASE) $(HEAD)
# For history: the number of main's newest commits to examine. For fleet: the commits to measure.
COMMITS ?= 20

.PHONY: install bench record measure history fleet site publish docs compare compare-compilers bisect regressions test test-gpu test-languages lint readme clean

# If pip does not work, .venv is created again: an interrupted first `make` leaves a .venv without pip, or with half of it.
# Two processes install in parallel. With a driver, PyCUDA and cuda-bindings are installed, too. PyCUDA is built if it has no wheel.
$(VENV)/installed: pyproject.toml ptxcount/pyproject.toml kernelwatch/pyproject.toml requirements/asv.txt requirements/environment.txt requirements/gpu.txt requirements/nvcc.txt
	$(BIN)/python -m pip install --quiet --no-index pip 2>/dev/null || { rm -rf $(VENV) && $(PYTHON) -m venv $(VENV); }
	printf '%s\n' '$(PIP) -r requirements/environment.txt -r requirements/asv.txt' \
	  '$(PIP) $(NVCC_WHEEL) "setuptools>=77"' | xargs --delimiter='\n' --max-procs=2 -n 1 sh -c
	$(CHECKOUT)
	if $(BIN)/python -c 'import ctypes; ctypes.CDLL("libcuda.so.1")' 2>/dev/null; then \
	  $(BIN)/kernelwatch pycuda-wheel && $(PIP) -r requirements/gpu.txt; fi
	touch $@

$(VENV)/tools: $(VENV)/installed requirements/dev.txt
	$(PIP) -r requirements/dev.txt
	touch $@

install: $(VENV)/installed

bench: $(VENV)/installed
	@$(BIN)/kernelwatch run $(ARGS) HEAD^!

# Use this on a GPU machine: it also stages the results.
record: $(VENV)/installed
	@$(BIN)/kernelwatch run $(ARGS) HEAD^! && git add results

# Two commits, their samples interleaved, on the same buffers; then: make compare.
measure: $(VENV)/installed
	$(if $(strip $(INTERLEAVED)),$(BIN)/kernelwatch measure "$(BASE)" "$(HEAD)" $(ARGS), \
	  printf '%s\n' "$(BASE)" "$(HEAD)" | $(BIN)/python -m asv run --record-samples $(ARGS) HASHFILE:-)

# Measures the newest commits of main that have no results of this machine.
history: $(VENV)/installed
	git rev-list --first-parent --max-count=$(COMMITS) main | \
	$(BIN)/python -m asv run --record-samples --skip-existing-commits $(ARGS) HASHFILE:-

$(VENV)/fleet: $(VENV)/installed requirements/fleet.txt
	$(PIP) -r requirements/fleet.txt
	touch $@

# Measures COMMITS (revisions or ranges) on all GPUs of this host, or on the workers of a Dask scheduler: SCHEDULER=tls://host:8786 TLS=FOLDER. See docs/fleet.md.
SCHEDULER ?=
TLS ?=
fleet: $(VENV)/fleet
	$(BIN)/kernelwatch fleet $(if $(SCHEDULER),--scheduler "$(SCHEDULER)") $(if $(TLS),--tls "$(TLS)") $(ARGS) $(COMMITS)

# Writes the project's pages to html/watch/; see docs/site.md.
site: $(VENV)/installed
	$(BIN)/kernelwatch site

# Writes the project's pages and asv's own.
publish: $(VENV)/installed
	$(BIN)/asv publish

$(VENV)/sphinx: $(VENV)/installed requirements/docs.txt
	$(PIP) -r requirements/docs.txt
	touch $@

# Builds the documentation in docs/_build/html; `make site` then includes it. Warnings and dead links are errors.
docs: $(VENV)/sphinx
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --builder html --doctree-dir docs/_build/doctrees docs docs/_build/html

# Lists regressions that nobody fixed or accepted, and drifts; see docs/review-a-change.md. ARGS="--json".
regressions: $(VENV)/installed
	@$(BIN)/kernelwatch regressions $(if $(MACHINE),--machine "$(MACHINE)") $(ARGS)

# Scripts call the command: make turns its exit code 1 into 2. ARGS="--all". See docs/review.md.
compare: $(VENV)/installed
	@$(BIN)/kernelwatch compare "$(BASE)" "$(HEAD)" $(SIDES) $(if $(MACHINE),--machine "$(MACHINE)") $(ARGS)

# Compares two compilers at one commit: make compare-compilers BASE=13.0.2 HEAD=13.5.0. See docs/run.md.
compare-compilers: SIDES := --compilers
compare-compilers: compare

# Finds the commit that changed a number; see docs/find-the-commit.md. ARGS="--json".
bisect: $(VENV)/installed
	@$(BIN)/kernelwatch bisect "$(METRIC)" "$(GOOD)" "$(BAD)" $(if $(MACHINE),--machine "$(MACHINE)") $(ARGS)

test: $(VENV)/tools
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

# Runs all tests that need a GPU, most of which need it alone, and prints a table of comparisons. ARGS="-x" ends at the first failure.
test-gpu: $(VENV)/tools
	$(BIN)/python -m tests.gpu $(ARGS)

# Installs the packages of the browser test, which also needs Node and Chromium. Without them, it is skipped.
tests/site/node_modules: tests/site/package-lock.json
	npm ci --ignore-scripts --no-audit --no-fund --prefix tests/site
	touch $@

# Installs small tools of other languages into a folder of their own: .venv keeps what is measured with. CI runs their examples.
$(VENV)/languages: $(VENV)/installed requirements/languages.txt
	$(PIP) --no-deps --upgrade --target $@ -r requirements/languages.txt
	touch $@

# Runs each example of docs/languages/ in an environment of its own, before a release: 5 GB of packages. EXAMPLES="count_triton count_warp" selects some.
EXAMPLES ?=
test-languages: $(VENV)/installed
	$(BIN)/python -m tests.docs.examples $(EXAMPLES)

lint: $(VENV)/tools docs
	$(BIN)/python -m ruff check
	$(BIN)/python -m ruff format --check
	$(BIN)/python -m mypy
	$(BIN)/python -m asv check --python=same
	$(BIN)/actionlint
	$(BIN)/zizmor --quiet --offline --strict-collection .

# Rewrites the tables of docs/results.md and the picture of rates from results/.
readme: $(VENV)/tools
	$(BIN)/python -m docs.figures

clean:
	rm -rf $(VENV) .asv html docs/_build
