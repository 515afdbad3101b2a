# Everything happens in .venv; nothing outside this folder is touched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BASE := $(VENV)/.base
DEV := $(VENV)/.dev
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt

# Real data for tests and benchmarks, where it lies beside the project.
ifneq ($(wildcard ../shared/data),)
export REGARD_DATA ?= $(abspath ../shared/data)
endif

.PHONY: setup demo test quick learn check clean

# The demo needs the base package only; tests and checks need the extra `dev`.
$(BASE): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-cache-dir --editable .
	touch $(BASE)

$(DEV): $(BASE)
	$(BIN)/python -m pip install --quiet --no-cache-dir --editable '.[dev]'
	touch $(DEV)

setup: $(DEV)

demo: $(BASE)
	$(BIN)/regard demo

test: setup
	$(BIN)/python -m pytest tests -m 'not learn and not device' -n 2

learn: setup
	$(BIN)/python -m pytest tests -m learn

quick: setup
	$(BIN)/python -m pytest tests -m 'learn and quick'

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

clean:
	rm -rf $(VENV) runs dist build *.egg-info
