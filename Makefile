# Every target does its own set-up in $(VENV) and costs nothing when nothing changed.
#   make PYTHON=python3.12 test        another interpreter (3.10 to 3.13)
#   make DATA=path/to/text demo        another text: a file, or a folder with train, valid and test

PYTHON ?= python3
VENV ?= .venv
DATA ?=
RUN ?= runs/demo
PYTEST_WORKERS ?= 2

BIN := $(VENV)/bin
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null)
PACKAGE := $(VENV)/installed-$(VERSION)
TOOLS := $(VENV)/installed-$(VERSION)-test
PIP := $(BIN)/python -m pip --disable-pip-version-check
# One worker per core: each worker's TensorFlow gets one computing thread.
TEST_ENVIRONMENT := TF_CPP_MIN_LOG_LEVEL=2 TF_NUM_INTRAOP_THREADS=1 TF_NUM_INTEROP_THREADS=1 OMP_NUM_THREADS=1
PYTEST := $(TEST_ENVIRONMENT) $(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist loadscope
TENSORFLOW_ONLY := analysis benchmarks cli data export report training

.DEFAULT_GOAL := help
.PHONY: help install demo test test-slow test-jax lint format clean distclean

help:
	@echo "make demo       train two small language models on English text, compare, export and serve one"
	@echo "make test       the test suite"
	@echo "make test-slow  the tests that take longer"
	@echo "make test-jax   the core's tests on Keras' JAX backend"
	@echo "make lint       ruff check and ruff format --check"
	@echo "make format     rewrite the sources as ruff would have them"
	@echo "make install    only the virtual environment $(VENV)"
	@echo "make clean      remove caches and runs/;  make distclean  also the virtual environments"
	@echo "variables       PYTHON=$(PYTHON) VENV=$(VENV) DATA=$(DATA) PYTEST_WORKERS=$(PYTEST_WORKERS)"

$(PACKAGE): setup.py constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' || { \
		echo "make: keras_drill needs Python 3.10 to 3.13; '$(PYTHON)' is '$(VERSION)'. Try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' || { \
		echo "make: '$(PYTHON)' has no venv module; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@echo "Installing into $(VENV) (about a minute, once)"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(PIP) install --quiet --constraint constraints.txt --editable .
	@touch $@

$(TOOLS): $(PACKAGE)
	@$(PIP) install --quiet --constraint constraints.txt --editable '.[test]'
	@touch $@

install: $(PACKAGE)

demo: $(PACKAGE)
	@$(BIN)/python -m keras_drill demo --run '$(RUN)' $(if $(DATA),--data '$(DATA)')

test: $(TOOLS)
	$(PYTEST) -m 'not slow'

test-slow: $(TOOLS)
	$(PYTEST) -m slow

# An environment of its own, so that the others prove that JAX is not needed.
test-jax:
	@$(MAKE) --no-print-directory VENV=.venv-jax .venv-jax/installed-$(VERSION)-jax
	$(TEST_ENVIRONMENT) KERAS_BACKEND=jax .venv-jax/bin/python -m pytest -n $(PYTEST_WORKERS) --dist loadscope \
		-m 'not slow' tests $(addprefix --ignore=tests/,$(TENSORFLOW_ONLY))

.venv-jax/installed-$(VERSION)-jax: .venv-jax/installed-$(VERSION)-test
	@.venv-jax/bin/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt --editable '.[test,jax]'
	@touch $@

lint: $(TOOLS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(TOOLS)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf runs build dist .pytest_cache .ruff_cache *.egg-info
	find . -name __pycache__ -not -path './.venv*' -prune -exec rm -rf {} +

distclean: clean
	rm -rf .venv .venv-*
