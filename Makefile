# make demo    installs what the demo needs and shows what this is about
# make test    installs everything and runs every check
# make quick   the tests of the core that are not slow: under a minute on two cores
# make newest  the built wheel with the newest version of every dependency: quick tests that use them;
#              with WHEEL_TESTS=tests every test that runs without an extra
# make lowest  the same with the lowest versions that pyproject.toml admits
# make wide    newest PyTorch, torchvision and timm (about 6 GB), the whole suite
# make sanitize  the kernel with address and undefined-behaviour checks, then under valgrind, fuzzed for ten minutes and one
# make docs    builds the site into site/
# make dist    builds the sdist, and from it the wheel, into dist/
PYTHON ?= python3
SCRIPTS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := .venv/$(SCRIPTS)
DIST_PYTHON := .venv-dist/$(SCRIPTS)/python
WIDE_PYTHON := .venv-wide/$(SCRIPTS)/python
PIP := -m pip install --quiet --disable-pip-version-check
# what neither trains, draws nor starts processes
CORE := $(addprefix tests/,analysis cli compat data paper project scoring)
# in the wheel, where another version of a dependency would show
WHEEL_TESTS ?= -m "not slow" $(addprefix tests/,analysis cli common data evaluation project scoring)
PYTEST := -m pytest -n auto --dist loadfile --durations=15
# a process for every core, and one thread in each
export OMP_NUM_THREADS ?= 1
# tests start hundreds of processes, and each would compile the package again
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test quick check docs dist newest lowest wide sanitize bench clean

demo: .venv/demo
	$(BIN)/sisod demo --out demo

# two processes check the types and the documents at the same time
test: .venv/ready
	$(MAKE) -j2 check docs
	$(BIN)/python $(PYTEST)

quick: .venv/ready
	$(BIN)/python $(PYTEST) -m "not slow" $(CORE)

check: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# strict: a warning fails, and a page that index.md does not list is one
docs: .venv/ready
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --fresh-env docs site

dist: .venv-dist/ready
	rm -rf dist
	$(DIST_PYTHON) -m build --outdir dist

newest lowest: dist
	$(PYTHON) tools/test_wheel.py $@ dist $(WHEEL_TESTS)

wide: .venv-wide/ready
	$(WIDE_PYTHON) $(PYTEST) --allow-missing-packages

FUZZ_SECONDS ?= 600
VALGRIND_SECONDS ?= 60
# memory that the interpreter itself keeps to its end is no leak of the kernel; what valgrind says about others is left out
sanitize: .venv/ready
	$(CC) -std=c11 -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -ffp-contract=off -shared -fPIC \
	  -I$$($(BIN)/python -c "import sysconfig; print(sysconfig.get_path('include'))") src/native/*.c \
	  -o .venv/sanitized.so
	LD_PRELOAD="$$($(CC) -print-file-name=libasan.so) $$($(CC) -print-file-name=libubsan.so)" \
	  ASAN_OPTIONS=detect_leaks=0 $(BIN)/python tools/fuzz_kernel.py .venv/sanitized.so --seconds $(FUZZ_SECONDS)
	$(CC) -std=c11 -O1 -g -ffp-contract=off -shared -fPIC \
	  -I$$($(BIN)/python -c "import sysconfig; print(sysconfig.get_path('include'))") src/native/*.c -o .venv/checked.so
	PYTHONMALLOC=malloc valgrind --error-limit=no --log-file=.venv/valgrind.log \
	  $(BIN)/python tools/fuzz_kernel.py .venv/checked.so --seconds $(VALGRIND_SECONDS) --seed 1
	! grep -F $(patsubst src/native/%,-e '(%:',$(wildcard src/native/*.c)) .venv/valgrind.log

# PEER_PYTHON: an interpreter that has panoptica and pyirstdmetrics, see benchmarks/speed/objects.py
bench: .venv/ready
	$(BIN)/python -m benchmarks.speed.engine
	$(BIN)/python -m benchmarks.speed.objects $(if $(PEER_PYTHON),--peer-python $(PEER_PYTHON))
	$(BIN)/python -m benchmarks.speed.containers
	$(BIN)/python -m benchmarks.speed.scale
	$(BIN)/python -m benchmarks.speed.losses
	$(BIN)/python -m benchmarks.speed.networks
	$(BIN)/python -m benchmarks.speed.compare
	$(BIN)/python -m benchmarks.speed.loader
	$(BIN)/python -m benchmarks.speed.onnx_predict

.venv/demo: pyproject.toml constraints.txt setup.py $(wildcard src/native/*)
	$(PYTHON) -m venv .venv
	$(BIN)/python $(PIP) -c constraints.txt -e '.[report,torch]'
	touch $@

.venv/ready: .venv/demo
	$(BIN)/python $(PIP) -c constraints.txt -e '.[dev,report,torch,cluster,ray,onnx,hf,lite,docs]'
	touch $@

.venv-dist/ready:
	$(PYTHON) -m venv .venv-dist
	$(DIST_PYTHON) $(PIP) build
	touch $@

# without constraints, and so without the witnesses that cap versions
.venv-wide/ready: pyproject.toml
	$(PYTHON) -m venv .venv-wide
	$(WIDE_PYTHON) $(PIP) --upgrade -e '.[test,docs,report,torch,cluster,onnx,lite,hf]' torchvision timm
	touch $@

clean:
	rm -rf .venv .venv-dist .venv-wide dist demo site
