PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Nothing is compiled at installation: only a third of the modules is ever imported, and each is compiled then, even if
# the environment turns that off.
INSTALL := -m pip install --quiet --no-compile
# It says of every editable installation that folders may take precedence.
export PYTHONWARNINGS := ignore:Editable installation
unexport PYTHONDONTWRITEBYTECODE

# `pip install ".[extra]"` replaces the editable installation by a copy, which changes do not reach: install again.
ORIGIN := import importlib.util; print(importlib.util.find_spec("text_metrics").origin)
ifneq ($(wildcard $(VENV)/.installed),)
ifneq ($(shell $(BIN)/python -P -c '$(ORIGIN)' 2>&1 | tail -1),$(CURDIR)/text_metrics/__init__.py)
$(info $(VENV) does not hold this checkout as an editable installation: it is installed again.)
$(shell rm -f $(VENV)/.installed*)
endif
endif

.PHONY: demo test test-suite test-discrete test-integrations lint benchmark results release spaces vendor chromium clean

demo: $(VENV)/.installed
	$(BIN)/text-metrics demo

test: lint test-suite

# One process more than there are cores shares the files of tests, because one waits for a server or a cluster; each has
# one thread of torch.
test-suite: $(VENV)/.installed-dev chromium
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $$(($$(nproc || getconf _NPROCESSORS_ONLN) + 1)) --dist loadfile --no-loadscope-reorder

# Tests of what is decided discretely, with sums in other orders: by instruction set and number of threads.
test-discrete: $(VENV)/.installed-dev
	OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive $(BIN)/python -m tests.discrete

# The evaluation harnesses, by their own commands.
test-integrations: test-lm-eval test-inspect

test-lm-eval: $(VENV)/.installed-lm-eval
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/test_integrations.py -k lm_eval

test-inspect: build/venv-inspect/.installed
	OMP_NUM_THREADS=1 build/venv-inspect/bin/python -m pytest tests/test_integrations.py -k "not lm_eval"

# mypy does not know that metrics/ is text_metrics.metrics: it reads links in the places that an installation has.
lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	rm -rf build/types && mkdir -p build/types/text_metrics
	ln -s $(CURDIR)/text_metrics/* $(CURDIR)/metrics build/types/text_metrics/
	MYPYPATH=build/types $(BIN)/mypy -n 2 build/types/text_metrics scripts spaces
	$(BIN)/python -m scripts.tooling.vendor --check
	$(BIN)/python -m scripts.tooling.density
	$(BIN)/python -m scripts.tooling.fill --check
	$(BIN)/python -m scripts.tooling.release --check

# results/benchmarks.csv, on an idle machine; fast-bleu needs a C++ compiler.
benchmark: $(VENV)/.installed-dev
	cd scripts/benchmarks && $(CURDIR)/$(BIN)/asv machine --yes && \
		$(CURDIR)/$(BIN)/asv run --python=same --set-commit-hash $$(git rev-parse HEAD) --show-stderr
	$(BIN)/python -m scripts.results.benchmarks

# results/*.csv and the tables that are filled from them; requires METRICS_TEST_DATA.
results: $(VENV)/.installed-dev
	$(BIN)/python -m scripts.results.evidence
	$(BIN)/python -m scripts.results.gruen
	$(BIN)/python -m scripts.results.people_sets
	$(BIN)/python -m scripts.results.report
	$(BIN)/python -m scripts.tooling.fill

# Everything that a version claims: tests with the data, results, screenshots, benchmarks, and what changed. Speed-ups
# depend on the machine: a missed one makes it fail only at the end.
release: test results spaces
	$(BIN)/python -m scripts.tooling.screenshots
	$(MAKE) benchmark && rm -f build/missed || touch build/missed
	$(BIN)/python -m scripts.tooling.fill
	$(BIN)/python -m scripts.tooling.release
	test ! -e build/missed

spaces: $(VENV)/.installed-dev
	$(BIN)/python -m scripts.tooling.build_space

vendor: $(VENV)/.installed
	$(BIN)/python -m scripts.tooling.vendor
	$(BIN)/python -m scripts.tooling.fill

# For the browser tests of the demos, where it can be installed; elsewhere they skip and say so.
chromium:
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && ! command -v chromium-headless-shell >/dev/null; then \
	  export DEBIAN_FRONTEND=noninteractive; \
	  apt-get update -qq && { apt-get install -y -qq --no-install-recommends chromium-headless-shell \
	    || apt-get install -y -qq --no-install-recommends chromium; } \
	    || echo "Chromium could not be installed: without it, the browser tests are skipped."; \
	fi

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(INSTALL) --upgrade --constraint constraints.txt pip setuptools
	$(BIN)/python $(INSTALL) --constraint constraints.txt --editable .
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/python $(INSTALL) --constraint constraints.txt --editable ".[dev]"
	touch $@

# What the tests of a harness need beside the checkout.
HARNESS := $(INSTALL) --no-build-isolation --only-deps

$(VENV)/.installed-lm-eval: $(VENV)/.installed-dev
	$(BIN)/python $(HARNESS) --constraint constraints.txt ".[lm-eval]"
	touch $@

# Inspect and lighteval need other versions of some libraries.
build/venv-inspect/.installed: pyproject.toml constraints-inspect.txt
	$(PYTHON) -m venv build/venv-inspect
	build/venv-inspect/bin/python $(INSTALL) --upgrade --constraint constraints-inspect.txt pip setuptools
	build/venv-inspect/bin/python $(HARNESS) --constraint constraints-inspect.txt ".[inspect]"
	build/venv-inspect/bin/python $(INSTALL) --no-build-isolation --no-deps --editable .
	touch $@

clean:
	rm -rf $(VENV) build *.egg-info
