# Every target does its own set-up in $(VENV) and costs nothing when nothing changed.
#   make PYTHON=python3.12 test        another interpreter (3.10 to 3.13)
#   make DATA=path/to/text demo        another text: a file, or a folder with train, valid and test

PYTHON ?= python3
VENV ?= .venv
DATA ?=
RUN ?= runs/demo
PARITY_SEEDS ?= $(shell shuf -i 1-1000000 -n 8)
PYTEST_WORKERS ?= 2
FUZZ_INPUTS ?= 100000
MUTANTS ?= 200
SEED ?= 1
# Cases of each parametrized test that `make test` runs; `make test-cases` runs the others.
TEST_CASES ?= 1
CASES ?= 2
SLOW_CASES ?=
SHARD ?=
KILLS ?= 20
JAX_FLAGS ?=
# Interpreters of the two ends of what is supported.
OLDEST_PYTHON ?= $(or $(shell .ci/find-python 3.10),python3.10)
NEWEST_PYTHON ?= $(or $(shell .ci/find-python 3.13),python3.13)

BIN := $(VENV)/bin
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null)
CONSTRAINTS ?= constraints.txt
PACKAGE := $(VENV)/installed-$(VERSION)
TOOLS := $(VENV)/installed-$(VERSION)-test
PIP := $(BIN)/python -m pip --disable-pip-version-check
# One worker per core: each worker's TensorFlow gets one computing thread.
TEST_ENVIRONMENT := TF_CPP_MIN_LOG_LEVEL=2 TF_NUM_INTRAOP_THREADS=1 TF_NUM_INTEROP_THREADS=1 OMP_NUM_THREADS=1
XDIST := -n $(PYTEST_WORKERS) --dist loadscope
PYTEST := $(TEST_ENVIRONMENT) $(BIN)/python -m pytest $(XDIST)
TENSORFLOW_ONLY := benchmarks data distribute docs export fuzz pipelines $(addprefix workbench/,analysis cli report serving tasks training)
# What JAX compiles is kept for processors of the same abilities: the tests' programs are the same each time.
JAX_CACHE := build/jax-$(shell { grep -m1 '^flags' /proc/cpuinfo 2>/dev/null || uname -mrs; } | cksum | cut -d' ' -f1)
JAX_CACHE_ENVIRONMENT := JAX_COMPILATION_CACHE_DIR=$(JAX_CACHE) JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0 \
	JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES=-1
# Of one CPU, for programs that are compiled to be run once.
EIGHT_DEVICES := --xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0
# The reference cases, the conformance tests and the tests against float64 of what an accelerator computes in its own way.
ACCELERATOR_PYTHON ?= $(PYTHON)
ACCELERATOR_WORKERS ?=
ACCELERATOR := $(addprefix tests/,reference conformance/test_public_layers.py scores layers/test_recurrent.py ops/test_top_k.py \
	$(addprefix fused_loss/test_,precision.py fused_loss.py linear_cross_entropy.py frozen_labels.py) \
	$(addprefix output_layer/test_,output_layer.py numerics.py))
# What both ends of what is supported are tried on: the core, and what it exports and serves.
CORE := tests $(addprefix --ignore=tests/,$(filter-out export workbench/serving,$(TENSORFLOW_ONLY)))

.DEFAULT_GOAL := help
.PHONY: help install demo test test-cases test-slow test-jax test-oldest test-newest test-package docs docs-serve test-docs test-reference test-parity \
	test-tfx test-distributed test-sharded test-accelerator test-benchmarks test-fuzz test-mutation test-all audit core types lint format clean distclean

help:
	@echo "make demo       train two small language models on English text, compare, export and serve one"
	@echo "make test       the test suite: every test that is not slow, TEST_CASES=$(TEST_CASES) cases of each"
	@echo "make test-all   everything that is checked before a release; .ci/run alone leaves a part of it out. Its parts:"
	@echo "  test-cases      the other cases of these tests"
	@echo "  test-slow       the tests that take longer (SLOW_CASES=1: one case of each; SHARD=2/6: the second sixth of the"
	@echo "                  files; KILLS=$(KILLS) of each program)"
	@echo "  test-jax        the core's tests on Keras' JAX backend, CASES=$(CASES) of each"
	@echo "  test-oldest     the core's tests on Python 3.10, TensorFlow 2.16 and Keras 3.12, CASES=$(CASES) of each"
	@echo "  test-newest     the core's tests on Python 3.13, CASES=$(CASES) of each"
	@echo "  test-package    build the package, install it elsewhere, and begin the demo there"
	@echo "  test-docs       build the site, run the code of the documentation, parse its commands, follow its links"
	@echo "  test-parity     compare with tensorflow-addons, in an environment where it still runs"
	@echo "  test-tfx        the pipelines' functions as a pipeline of TFX, in an environment of its own"
	@echo "  test-distributed  one device, two replicas and two workers train alike"
	@echo "  test-sharded    output layers that eight JAX devices share train as on one device"
	@echo "  test-benchmarks  every benchmark, at the smallest sizes"
	@echo "  test-fuzz       FUZZ_INPUTS=$(FUZZ_INPUTS) random inputs and damaged files; test-all tries a tenth of these"
	@echo "  test-reference  replay the reference cases in the folder KERAS_DRILL_REFERENCE"
	@echo "make test-accelerator  the core's tests on the GPU or TPU of ACCELERATOR_PYTHON=$(ACCELERATOR_PYTHON), by JAX; no part of test-all"
	@echo "make docs       build the documentation site in build/site;  make docs-serve  also serves it on this machine"
	@echo "make test-mutation  mutation testing: MUTANTS=$(MUTANTS) of SEED=$(SEED), in the background; no part of test-all"
	@echo "make audit      look the pinned packages up among known weaknesses; needs PyPI itself, and is no part of test-all"
	@echo "make types      check the type hints"
	@echo "make lint       ruff check and ruff format --check"
	@echo "make format     rewrite the sources as ruff would have them"
	@echo "make install    only the virtual environment $(VENV)"
	@echo "make clean      remove caches and runs/;  make distclean  also the virtual environments"
	@echo "variables       PYTHON=$(PYTHON) VENV=$(VENV) DATA=$(DATA) PYTEST_WORKERS=$(PYTEST_WORKERS)"

$(PACKAGE): setup.py $(CONSTRAINTS)
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' || { \
		echo "make: keras_drill needs Python 3.10 to 3.13; '$(PYTHON)' is '$(VERSION)'. Try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' || { \
		echo "make: '$(PYTHON)' has no venv module; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@echo "Installing into $(VENV) (about a minute, once)"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(PIP) install --quiet --constraint $(CONSTRAINTS) --editable .
	@touch $@

$(TOOLS): $(PACKAGE)
	@$(PIP) install --quiet --constraint $(CONSTRAINTS) --editable '.[test]'
	@touch $@

install: $(PACKAGE)

demo: $(PACKAGE)
	@$(BIN)/python -m keras_drill_command demo --run '$(RUN)' $(if $(DATA),--data '$(DATA)')

test: $(TOOLS)
	$(PYTEST) -m 'not slow' --cases $(TEST_CASES) --durations=20

# The cases of parametrized tests that `make test` leaves out.
test-cases: $(TOOLS)
	$(PYTEST) -m 'not slow' --other-cases $(TEST_CASES) --durations=20

test-slow: $(VENV)/installed-$(VERSION)-browser
	$(PYTEST) -m slow $(if $(SLOW_CASES),--cases $(SLOW_CASES)) $(if $(SHARD),--shard $(SHARD)) \
		$(addprefix --ignore=tests/,distribute benchmarks docs fuzz) --kills $(KILLS) --durations=20

# Workers wait for each other: no other tests beside them.
test-distributed: $(TOOLS)
	TF_CPP_MIN_LOG_LEVEL=3 $(BIN)/python -m pytest tests/distribute --kills $(KILLS)

# Output layers that are split over devices of JAX.
test-sharded:
	@$(MAKE) --no-print-directory VENV=.venv-jax .venv-jax/installed-$(VERSION)-jax
	TF_CPP_MIN_LOG_LEVEL=3 $(JAX_CACHE_ENVIRONMENT) KERAS_BACKEND=jax XLA_FLAGS='$(EIGHT_DEVICES)' \
		.venv-jax/bin/python -m pytest $(XDIST) tests/distribute/sharded

test-benchmarks: $(TOOLS)
	$(TEST_ENVIRONMENT) $(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist load tests/benchmarks --durations=20
	@$(MAKE) --no-print-directory VENV=.venv-jax .venv-jax/installed-$(VERSION)-jax
	$(TEST_ENVIRONMENT) $(JAX_CACHE_ENVIRONMENT) KERAS_BACKEND=jax .venv-jax/bin/python -m pytest \
		$(addprefix tests/benchmarks/test_,paper_scale.py accelerator.py tensorflow_program.py)

# On the accelerator that JAX finds, by an interpreter that has JAX for it, Keras and pytest; TensorFlow is not needed.
# Float32 is float32 there: the default of JAX is less precise.
test-accelerator:
	KERAS_BACKEND=jax JAX_DEFAULT_MATMUL_PRECISION=highest XLA_PYTHON_CLIENT_PREALLOCATE=false \
		$(ACCELERATOR_PYTHON) -m pytest $(ACCELERATOR_WORKERS) -m 'not slow' --cases $(CASES) $(ACCELERATOR)

# Other inputs each time.
test-fuzz: $(TOOLS)
	$(TEST_ENVIRONMENT) $(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist load tests/fuzz -m slow --fuzz-inputs $(FUZZ_INPUTS)

# Hours, resumable: what was tried stays in build/mutation. FRESH=1 begins again, RETRY=1 tries the survivors again,
# ROOMS="ops scores" leaves out the other parts.
test-mutation: $(VENV)/installed-$(VERSION)-mutation
	$(TEST_ENVIRONMENT) nice -n 19 $(BIN)/python -u -m tests.mutation --mutants $(MUTANTS) --seed $(SEED) \
		$(if $(FRESH),--fresh) $(if $(RETRY),--retry) $(if $(ROOMS),--rooms $(ROOMS))

$(VENV)/installed-$(VERSION)-mutation: $(TOOLS)
	@$(PIP) install --quiet --constraint $(CONSTRAINTS) --editable '.[mutation]'
	@touch $@

# What drives a Chromium that is installed already; without one the tests of the page are skipped.
$(VENV)/installed-$(VERSION)-browser: $(TOOLS)
	@$(PIP) install --quiet --constraint $(CONSTRAINTS) --editable '.[browser]'
	@touch $@

test-docs: $(TOOLS) docs
	$(PYTEST) tests/docs

# The pages, with the reference made from docstrings, parsers and definitions. Warnings are errors.
docs: $(VENV)/installed-$(VERSION)-docs
	@$(BIN)/python -m docs.render_results --check
	@TF_CPP_MIN_LOG_LEVEL=3 $(BIN)/python -m docs.write_reference
	@TF_CPP_MIN_LOG_LEVEL=3 $(BIN)/python -m docs.write_notebooks
	@$(BIN)/python -m sphinx --builder html --fresh-env --fail-on-warning --keep-going --quiet docs build/site
	@echo "built build/site/index.html"

docs-serve: docs
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory build/site 8000

$(VENV)/installed-$(VERSION)-docs: $(PACKAGE)
	@$(PIP) install --quiet --constraint $(CONSTRAINTS) --editable '.[docs]'
	@touch $@

test-reference: $(TOOLS)
	$(TEST_ENVIRONMENT) $(BIN)/python -m tests.reference.replay --skip-unknown $(wildcard $(KERAS_DRILL_REFERENCE)/*.npz)

# Cases of tensorflow-addons from fresh seeds, made in an environment where it still runs.
test-parity: $(TOOLS) .venv-parity/installed
	@rm -rf build/parity
	TF_CPP_MIN_LOG_LEVEL=3 .venv-parity/bin/python tests/parity/make_cases.py build/parity $(PARITY_SEEDS)
	$(TEST_ENVIRONMENT) $(BIN)/python -m tests.reference.replay build/parity/*.npz

.venv-parity/installed:
	@python=$$(.ci/find-python 3.11); test -n "$$python" || { \
		echo "make: tensorflow-addons 0.23.0 needs Python 3.11, and there is none here" >&2; exit 1; }; \
	"$$python" -m venv --clear .venv-parity
	@.venv-parity/bin/python -m pip --disable-pip-version-check install --quiet tensorflow==2.15.1 tensorflow-addons==0.23.0
	@touch $@

# The same functions on Beam, by TFX's own components. Its dependencies are more than pip can resolve in minutes.
test-tfx: .venv-tfx/installed
	TF_CPP_MIN_LOG_LEVEL=3 .venv-tfx/bin/python -m pytest -n $(PYTEST_WORKERS) --dist load pipelines/tfx tests/pipelines/tfx

.venv-tfx/installed: constraints-tfx.txt setup.py
	@python=$$(.ci/find-python 3.10); test -n "$$python" || { \
		echo "make: TFX 1.16 needs Python 3.10, and there is none here" >&2; exit 1; }; \
	"$$python" -m venv --clear .venv-tfx
	@.venv-tfx/bin/python -m pip --disable-pip-version-check install --quiet uv
	@.venv-tfx/bin/uv pip install --quiet --python .venv-tfx/bin/python --no-deps --requirement constraints-tfx.txt --editable .
	@touch $@

core: $(TOOLS)
	$(PYTEST) -m 'not slow' --cases $(CASES) $(CORE)

# Environments of their own.
test-oldest:
	@$(MAKE) --no-print-directory core VENV=.venv-oldest PYTHON='$(OLDEST_PYTHON)' CONSTRAINTS=constraints-oldest.txt

test-newest:
	@$(MAKE) --no-print-directory core VENV=.venv-newest PYTHON='$(NEWEST_PYTHON)'

# So that the others prove that JAX is not needed.
test-jax:
	@$(MAKE) --no-print-directory VENV=.venv-jax .venv-jax/installed-$(VERSION)-jax
	$(TEST_ENVIRONMENT) $(JAX_CACHE_ENVIRONMENT) KERAS_BACKEND=jax XLA_FLAGS='$(JAX_FLAGS)' .venv-jax/bin/python -m pytest $(XDIST) \
		-m 'not slow' --cases $(CASES) tests $(addprefix --ignore=tests/,$(TENSORFLOW_ONLY))

.venv-jax/installed-$(VERSION)-jax: .venv-jax/installed-$(VERSION)-test
	@.venv-jax/bin/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt --editable '.[test,jax]'
	@touch $@

# What users get, with nothing else, away from the sources.
test-package: $(VENV)/installed-$(VERSION)-package
	@rm -rf build/package && mkdir -p build/package
	@$(BIN)/python -m build --outdir build/package . >build/package/log 2>&1 || { cat build/package/log; exit 1; }
	@$(PYTHON) -m venv --clear .venv-package
	@.venv-package/bin/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt build/package/*.tar.gz
	@.venv-package/bin/python -m pip --disable-pip-version-check install --quiet --force-reinstall --no-deps build/package/*.whl
	@TF_CPP_MIN_LOG_LEVEL=2 .venv-package/bin/python -I tests/package/first_steps.py

$(VENV)/installed-$(VERSION)-package: $(TOOLS)
	@$(PIP) install --quiet --constraint constraints.txt --editable '.[package]'
	@touch $@

types: $(VENV)/installed-$(VERSION)-types
	$(BIN)/python -m mypy

$(VENV)/installed-$(VERSION)-types: $(TOOLS)
	@$(PIP) install --quiet --constraint constraints.txt --editable '.[types]'
	@touch $@

# PyPI's own database tells what is known. What cannot be asked is an error, and never "nothing found".
audit: .venv-audit/installed
	@for pins in constraints.txt constraints-oldest.txt; do \
		echo "$$pins"; \
		.venv-audit/bin/pip-audit --strict --disable-pip --no-deps --progress-spinner off \
			--requirement $$pins >.venv-audit/answer 2>&1 && status=0 || status=1; \
		if [ $$status = 1 ] && ! grep -q '^Found .* known vulnerabilit' .venv-audit/answer; then \
			tail -n 1 .venv-audit/answer >&2; \
			echo "make: NOT AUDITED: https://pypi.org cannot be asked from here" >&2; exit 1; \
		fi; \
		grep -v '^WARNING' .venv-audit/answer; \
		[ $$status = 0 ] || exit 1; \
	done

.venv-audit/installed:
	@$(PYTHON) -m venv --clear .venv-audit
	@.venv-audit/bin/python -m pip --disable-pip-version-check install --quiet pip-audit==2.10.1 || { \
		echo "make: NOT AUDITED: pip-audit cannot be installed from here" >&2; exit 1; }
	@touch $@

test-all:
	.ci/run --all

lint: $(TOOLS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/python -m docs.draw_architecture --check

format: $(TOOLS)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf runs build dist docs/reference/generated docs/tutorials/generated .pytest_cache .mypy_cache .ruff_cache *.egg-info
	find . -name __pycache__ -not -path './.venv*' -prune -exec rm -rf {} +

distclean: clean
	rm -rf .venv .venv-*
