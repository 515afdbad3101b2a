# Everything happens in .venv; nothing outside this folder is touched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BASE := $(VENV)/.base
SERVE := $(VENV)/.serve
DEV := $(VENV)/.dev
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt

# Real data for tests and benchmarks, where it lies beside the project.
ifneq ($(wildcard ../shared/data),)
export REGARD_DATA ?= $(abspath ../shared/data)
endif

.PHONY: setup demo serve test test-all faults browser quick learn check clean

# The demo needs the base package only; tests and checks need the extra `dev`.
$(BASE): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-cache-dir --editable .
	touch $(BASE)

$(SERVE): $(BASE)
	$(BIN)/python -m pip install --quiet --no-cache-dir --editable '.[serve]'
	touch $(SERVE)

$(DEV): $(BASE)
	$(BIN)/python -m pip install --quiet --no-cache-dir --editable '.[dev]'
	touch $(DEV)

setup: $(DEV)

demo: $(BASE)
	$(BIN)/regard demo
	@echo 'The command is $(BIN)/regard here, and regard after: . $(BIN)/activate'
	@echo 'A page that shows these models at work: make serve'

# The page at the models of the demo, which are trained first if they do not exist yet.
serve: $(SERVE)
	test -f runs/demo/comparison.html || $(BIN)/regard demo
	$(BIN)/regard serve bahdanau2015=runs/demo/bahdanau2015 vaswani2017=runs/demo/vaswani2017 --open

test: setup
	$(BIN)/python -m pytest tests -m 'not learn and not device and not notebook and not faults and not browser' -n 2

# Every row of the test matrices, all models that must learn, all faults, the page in a browser, and
# a GPU if there is one.
test-all: setup
	$(BIN)/python -m pytest tests -m 'not learn and not device and not notebook and not faults and not browser' -n 2 --full-matrix
	$(BIN)/python -m pytest tests -m 'learn or notebook or faults or browser'
	if $(BIN)/python -c 'import torch, sys; sys.exit(not torch.cuda.is_available())'; then \
		$(BIN)/python -m pytest tests -m device; \
	fi

learn: setup
	$(BIN)/python -m pytest tests -m learn

# The whole fault-injection suite; a quick selection is part of `make test`.
faults: setup
	$(BIN)/python -m pytest tests -m faults -n 2

# The page in Chromium, without which the tests are skipped.
browser: setup
	$(BIN)/python -m pytest tests -m browser

quick: setup
	$(BIN)/python -m pytest tests -m 'quick and (learn or browser) or notebook'

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

clean:
	rm -rf $(VENV) runs dist build *.egg-info
