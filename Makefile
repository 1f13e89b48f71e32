# Everything starts from nothing: `make demo` creates .venv with the package and what it needs, and `make test` and the
# others add the development tools to it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PACKAGE := $(VENV)/package-installed
TOOLS := $(VENV)/tools-installed
INSTALL := -m pip install -qq --disable-pip-version-check --no-compile
# pip does not compile what it installs: the first import does, for the few modules that are imported.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo docs test test-all test-lowest test-wheel wheel lint format bench bench-small clean

help:
	@echo "make demo      the main job, on a fresh machine"
	@echo "make test      lint and tests, two workers"
	@echo "make test-all  the same with the slow tests"
	@echo "make test-lowest  tests with the oldest numpy, scipy, scikit-learn, ... that are allowed"
	@echo "make wheel     wheel and sdist, into dist/"
	@echo "make test-wheel  the wheel, installed alone into a new environment, runs the demo"
	@echo "make lint      ruff, mypy --strict, import-linter"
	@echo "make format    let ruff fix what it can"
	@echo "make bench     speed of a step and of the linear programme, as ratios"
	@echo "make bench-small  a small version of the main table, some minutes on two cores"
	@echo "make docs      the documentation site, in build/site"
	@echo "make clean     remove .venv and caches"

$(PACKAGE): pyproject.toml constraints.txt
	@echo "Installing ParetoDA and its dependencies into $(VENV). This takes about half a minute when pip has them in its cache."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python $(INSTALL) -c constraints.txt -e .
	@touch $@

# Tests start many processes, so everything is compiled here, on all cores; a file for a newer Python is no error.
$(TOOLS): $(PACKAGE)
	@echo "Installing the development tools into $(VENV). This takes some minutes."
	@$(BIN)/python $(INSTALL) -c constraints.txt -e ".[dev]"
	@$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true
	@touch $@

demo: $(PACKAGE)
	$(BIN)/paretoda demo --out demo

lint: $(TOOLS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -m "not slow"

test-all: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

# No extras, so the tests of these parts alone; old packages warn of what newer ones under them will drop.
LOWEST := .venv-lowest
LOWEST_TESTS := core io schemes contracts gradients models objectives evaluation data training run tasks estimator report cli
$(LOWEST)/installed: pyproject.toml constraints-lowest.txt
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet -c constraints-lowest.txt -e . pandas pytest pytest-xdist hypothesis torchmetrics
	touch $@

test-lowest: $(LOWEST)/installed
	OMP_NUM_THREADS=1 $(LOWEST)/bin/python -m pytest -n 2 -m "not slow" -W ignore::DeprecationWarning $(addprefix tests/,$(LOWEST_TESTS))

wheel: $(TOOLS)
	rm -rf dist
	$(BIN)/python -m build --quiet

# As a user installs it: no extras, no source tree; /tmp, so that nothing of this folder is imported.
test-wheel: wheel
	rm -rf .venv-wheel
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/python -m pip install --quiet -c constraints.txt dist/*.whl
	.venv-wheel/bin/python -m pip check
	cd "$$(mktemp -d)" && $(CURDIR)/.venv-wheel/bin/paretoda demo --out demo

format: $(TOOLS)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Open build/site/index.html; for its search, `python3 -m http.server -d build/site`.
docs: $(TOOLS)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(TOOLS)
	$(BIN)/python benchmarks/linear_program.py
	$(BIN)/python benchmarks/step.py

# Two real tasks where their files are ($PARETODA_DATA, or ../shared/data), the embedded digits elsewhere.
SMALL := --methods source-only,dann --baselines logistic-z --base source-only --seeds 3 --steps 150
bench-small: $(TOOLS)
	@if [ -d "$${PARETODA_DATA:-../shared/data}" ]; then \
	  $(BIN)/paretoda bench development --tasks "pacs A-C,surf A-C" $(SMALL) --out build/bench-small/development; \
	else \
	  echo "no folder with the suites' data: the embedded suite digits is run instead"; \
	  $(BIN)/paretoda bench digits $(SMALL) --out build/bench-small/digits; \
	fi

clean:
	rm -rf $(VENV) $(LOWEST) .venv-wheel .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build
