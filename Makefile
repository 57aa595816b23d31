PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Nothing is compiled at installation: only a third of the modules is ever imported, and each is compiled then, even if
# the environment turns that off.
INSTALL := -m pip install --quiet --no-compile
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-fast test-integrations test-lm-eval test-inspect lint vendor cards evidence benchmark encoders validate-probeval probe validate-gruen meta-eval reports attack clean chromium spaces screenshots

demo: $(VENV)/.installed
	$(BIN)/text-metrics demo

# One process more than there are cores shares the tests, because one waits for a server or a cluster; each has one thread
# of torch.
test: $(VENV)/.installed-dev chromium lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $$(($$(nproc || getconf _NPROCESSORS_ONLN) + 1)) --dist loadfile

test-fast: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -m "not slow"

# By the harnesses' own commands; with -j2, both at once.
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
	$(BIN)/python -m scripts.tooling.cards --check
	$(BIN)/python -m scripts.tooling.fill_evidence --check

# For the browser tests of the demos, where it can be installed; elsewhere they skip and say so.
chromium:
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && ! command -v chromium-headless-shell >/dev/null; then \
	  export DEBIAN_FRONTEND=noninteractive; \
	  apt-get update -qq && { apt-get install -y -qq --no-install-recommends chromium-headless-shell \
	    || apt-get install -y -qq --no-install-recommends chromium; } \
	    || echo "Chromium could not be installed: without it, the browser tests are skipped."; \
	fi

# 21 times as many odd calls of the metrics, damaged files for the commands and simulated samples as in the tests, 10^5
# odd calls and files in all, and ten times as many hostile visitors of the demos, and samples of intervals and tests.
attack: $(VENV)/.installed-dev chromium
	FUZZ_TIMES=21 $(BIN)/python -m pytest tests/test_fuzz_metrics.py tests/test_fuzz_commands.py -rP
	FUZZ_TIMES=21 $(BIN)/python -m pytest tests/test_probeval_sampling.py tests/test_probeval_properties.py -rP
	FUZZ_TIMES=21 $(BIN)/python -m pytest tests/test_rarefaction.py -k simulated
	INTERVAL_TIMES=10 $(BIN)/python -m pytest tests/test_intervals.py -rP
	ATTACK_TIMES=10 $(BIN)/python -m pytest tests/test_spaces_hostile.py tests/test_spaces_server.py -rP

spaces: $(VENV)/.installed-dev
	$(BIN)/python -m scripts.tooling.build_space

screenshots: $(VENV)/.installed-dev chromium
	$(BIN)/python -m scripts.tooling.screenshots

vendor: $(VENV)/.installed
	$(BIN)/python -m scripts.tooling.vendor

cards: $(VENV)/.installed
	$(BIN)/python -m scripts.tooling.cards

# Copies the tables of EVIDENCE.md into README and the cards.
evidence: $(VENV)/.installed
	$(BIN)/python -m scripts.tooling.fill_evidence

benchmark: $(VENV)/.installed-dev
	$(BIN)/python $(INSTALL) --constraint constraints.txt --editable ".[benchmark]"
	$(BIN)/python -m scripts.reports.benchmark --out . --check

validate-probeval: $(VENV)/.installed-dev
	$(BIN)/python -m scripts.reports.probeval --report build/probeval.md

# The figures of docs/probeval.md and its tables in docs/probeval/tables.md, in about five minutes.
# The test set's clusters do not look like people's: see docs/probeval.md.
CFC_DEV := $(METRICS_TEST_DATA)/data/probeval/cfc_dev_targets.jsonl
CFC := $(METRICS_TEST_DATA)/data/probeval/cfc_test
CFC_MODELS := $(CFC)/models/0715
probe: $(VENV)/.installed-dev
	$(BIN)/text-metrics probe report $(CFC)/targets.jsonl --people $(CFC)/human_predictions.json \
		"GPT-2 large=$(CFC_MODELS)modelgpt2-large_sample200_temp1.0.jsonl" \
		"GPT-2 XL=$(CFC_MODELS)modelgpt2-xl_sample100_temp1.0.jsonl" \
		"GPT-2 large, one shot=$(CFC_MODELS)oneshot_modelgpt2-large_sample200_temp0.9.jsonl" \
		"GPT-2 XL, one shot=$(CFC_MODELS)oneshot_modelgpt2-xl_sample100_temp1.0.jsonl" \
		"ProtoQA-tuned=$(CFC_MODELS)modelprotoqa_sample200_temp1.0.jsonl" \
		"ProtoQA-tuned, one shot=$(CFC_MODELS)oneshot_modelprotoqa_sample200_temp1.0.jsonl" \
		"fine-tuned=$(CFC_MODELS)modelft_grad8lr5e-06sample200_temp1.0.jsonl" \
		"fine-tuned, one shot=$(CFC_MODELS)oneshot_modelft_grad32lr1e-06sample200_temp1.0.jsonl" \
		--setting clustering=soft --setting cache_dir=build/embeddings --plot docs/probeval/report.svg --html build/probe.html --write docs/probeval/tables.md
	$(BIN)/text-metrics probe annotators $(CFC_DEV) --plot docs/probeval/annotators.svg --write docs/probeval/tables.md
	$(BIN)/text-metrics probe sensitivity $(CFC_DEV) --plot docs/probeval/sensitivity.svg --write docs/probeval/tables.md

validate-gruen: $(VENV)/.installed-dev
	$(BIN)/python -m scripts.reports.gruen --text $(METRICS_TEST_DATA)/data/text --gruen $(METRICS_TEST_DATA)/data/gruen \
		--report build/gruen.md
	$(BIN)/python -m scripts.reports.gruen_reading

# EVIDENCE.md, its figures, and its tables in README and the cards.
meta-eval: $(VENV)/.installed-dev
	$(BIN)/python -m scripts.reports.evidence

# The examples of text-metrics report.
reports: $(VENV)/.installed-dev
	$(BIN)/python -m scripts.reports.systems generators
	$(BIN)/python -m scripts.reports.systems people

# One thread for each encoder: the libraries read these when they are imported.
ONE_THREAD := OMP_NUM_THREADS=1 RAYON_NUM_THREADS=1 LOKY_MAX_CPU_COUNT=1 TOKENIZERS_PARALLELISM=false
encoders: $(VENV)/.installed-dev
	$(ONE_THREAD) $(BIN)/python -m scripts.reports.encoders time --write docs/encoders.md
	$(ONE_THREAD) $(BIN)/python -m scripts.reports.encoders agreement --write docs/encoders.md

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
