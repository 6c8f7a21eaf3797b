# make demo   sets everything up and shows what this is about
# make test   sets everything up and runs every check
# make docs   sets everything up and builds the site into site/
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check docs bench clean

demo: .venv/ready
	$(BIN)/sisod demo --out demo

test: check docs
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile  # a process for every core

check: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# strict: a warning fails, and a page that index.md does not list is one
docs: .venv/ready
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --fresh-env docs site

bench: .venv/ready
	$(BIN)/python benchmarks/engine.py
	$(BIN)/python benchmarks/folders.py
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/losses.py
	$(BIN)/python benchmarks/networks.py
	$(BIN)/python benchmarks/compare.py
	$(BIN)/python benchmarks/loader.py

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,report,torch,cluster,onnx,lite,docs]'
	touch $@

clean:
	rm -rf .venv demo site
