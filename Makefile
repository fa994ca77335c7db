# Two commands on a fresh machine: `make demo` and `make test`. Everything they need goes into .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check install --quiet
WORKERS ?= auto
PYTEST ?=
# What must be covered whole, branches included.
WHOLE := src/fedforget/errors.py,src/fedforget/examples.py,src/fedforget/seeds.py,src/fedforget/params.py,src/fedforget/plan.py,src/fedforget/federation.py,src/fedforget/forgetting/*,src/fedforget/workspace/*

.PHONY: demo demo-flower test test-flower test-slow simulate check lint types coverage clean

demo: $(VENV)/base
	rm -rf demo
	$(BIN)/fedforget demo demo

# A SuperLink and 8 SuperNodes on this machine: train, lose two, forget one, verify.
demo-flower: $(VENV)/flower
	$(BIN)/fedforget federation demo --app flower

test: $(VENV)/torch $(VENV)/flower
	$(BIN)/pytest -n $(WORKERS) $(PYTEST)

test-slow: $(VENV)/torch $(VENV)/flower
	$(BIN)/pytest -n $(WORKERS) -m slow $(PYTEST)

# Whole lives of a federation on a disk whose power fails; a failing seed lives again by its number: SEEDS=17
SEEDS ?= 0-499
simulate: $(VENV)/dev
	PYTHONPATH=tests $(BIN)/python -m simulation $(SEEDS) $(SIMULATE)

# Two at a time, each with a federation of its own: they mostly wait for Flower to look for messages.
test-flower: $(VENV)/flower
	$(BIN)/pytest -n 2 --dist loadfile -m flower $(PYTEST)

# What CI runs.
check: $(VENV)/torch $(VENV)/flower lint types
	$(BIN)/coverage erase
	$(MAKE) --no-print-directory test PYTEST="--cov --cov-report= $(PYTEST)"
	$(MAKE) --no-print-directory coverage

lint: $(VENV)/dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(VENV)/torch $(VENV)/flower
	$(BIN)/mypy

coverage:
	$(BIN)/coverage report --include='$(WHOLE)' --fail-under=100
	$(BIN)/coverage report --format=total

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/base: pyproject.toml | $(BIN)/python
	$(PIP) --editable .
	@touch $@

$(VENV)/dev: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --constraint constraints.txt --editable '.[dev]'
	@touch $@ $(VENV)/base

# torch is pinned for development only: newer builds bring gigabytes for GPUs nobody here has.
$(VENV)/torch: $(VENV)/dev
	$(PIP) --constraint constraints.txt --editable '.[dev,torch]'
	@touch $@

$(VENV)/flower: $(VENV)/dev
	$(PIP) --constraint constraints.txt --editable '.[dev,flower,simulation]'
	@touch $@

clean:
	rm -rf $(VENV) demo .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache
