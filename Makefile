PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test test-fast lint vendor benchmark validate-probeval clean

demo: $(VENV)/.installed
	$(BIN)/python scripts/demo.py

test: $(VENV)/.installed-dev lint
	$(BIN)/python -m pytest

test-fast: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -m "not slow"

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy metrics scripts
	$(BIN)/python scripts/vendor.py --check

vendor: $(VENV)/.installed
	$(BIN)/python scripts/vendor.py

benchmark: $(VENV)/.installed-dev
	$(BIN)/python -m pip install --quiet --constraint constraints.txt ".[benchmark]"
	$(BIN)/python scripts/benchmark.py --check --report BENCHMARKS.md

validate-probeval: $(VENV)/.installed-dev
	$(BIN)/python scripts/validate_probeval.py --report build/probeval.md --plot build/probeval.png

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt .
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --constraint constraints.txt ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) build *.egg-info
