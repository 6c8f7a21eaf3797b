# make demo   sets everything up and shows what this is about
# make test   sets everything up and runs every check
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check bench clean

demo: .venv/ready
	$(BIN)/sisod demo --out demo

test: check
	$(BIN)/python -m pytest

check: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: .venv/ready
	$(BIN)/python benchmarks/engine.py
	$(BIN)/python benchmarks/folders.py
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/losses.py
	$(BIN)/python benchmarks/networks.py
	$(BIN)/python benchmarks/loader.py

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,report,torch,cluster,onnx,lite]'
	touch $@

clean:
	rm -rf .venv demo
