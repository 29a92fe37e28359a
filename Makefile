# make install   .venv with pinned versions
# make train     train on Intersection         (ARGS="algo=mappo seed=1 ..." is passed on)
# make test      lint, types and tests         (ARGS="-k name" is passed on to pytest)

PYTHON ?= python3.11
BIN := .venv/bin
ARGS ?=

.PHONY: install train test lint

install: .venv/installed

.venv/installed: setup.py constraints.txt requirements-nodeps.txt
	@command -v $(PYTHON) >/dev/null || { echo "error: $(PYTHON) not found: install Python 3.11, or name yours with make PYTHON=..." >&2; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] < (3, 12))' || { echo "error: $$($(PYTHON) --version) cannot run MetaDrive 0.4.3: install Python 3.11 (or 3.10)" >&2; exit 2; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "error: $(PYTHON) has no venv module: install it (Debian, Ubuntu: apt install python3-venv)" >&2; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt torch==2.13.0
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --requirement requirements-nodeps.txt
	@touch $@

train: install
	$(BIN)/python -m maip3o.train +scenario=intersection $(ARGS)

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The robots' engines share a process neither with MetaDrive's nor with each other: each file has its own.
ROBOTS := $(wildcard tests/test_robots_*.py tests/test_video_robots.py)

test: lint
	$(BIN)/python -m pytest -n auto --dist loadgroup $(addprefix --ignore=,$(ROBOTS)) $(ARGS) || [ $$? -eq 5 ]
	for file in $(ROBOTS); do $(BIN)/python -m pytest $$file $(ARGS) || [ $$? -eq 5 ] || exit 1; done
