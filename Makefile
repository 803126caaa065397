# The two commands: `make bench` and `make test`. Everything is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
REQUIREMENTS := $(wildcard requirements/*.txt)

.PHONY: bench test lint readme clean

# With a driver, PyCUDA and cuda-bindings come along: PyCUDA is built if there is no wheel of it.
$(VENV)/installed: $(REQUIREMENTS) pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  -r requirements/environment.txt -r requirements/nvcc.txt -r requirements/asv.txt -r requirements/dev.txt
	if $(BIN)/python -c 'import ctypes; ctypes.CDLL("libcuda.so.1")' 2>/dev/null; then \
	  $(BIN)/python -m runner.pycuda_wheel && \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/gpu.txt; fi
	touch $@

bench: $(VENV)/installed
	$(BIN)/python -m asv run --record-samples HEAD^!; status=$$?; \
	$(BIN)/python -m asv publish && $(BIN)/python -m report.summary; exit $$status

test: $(VENV)/installed
	$(BIN)/python -m pytest

lint: $(VENV)/installed
	$(BIN)/python -m ruff check
	$(BIN)/python -m ruff format --check
	$(BIN)/python -m mypy
	$(BIN)/python -m asv check --python=same

# Rewrites the README's table from results/.
readme: $(VENV)/installed
	$(BIN)/python -m report.readme

clean:
	rm -rf $(VENV) .asv html
