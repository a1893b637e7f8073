PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: demo test test-slow lint bench paper clean

demo: $(VENV)/core
	$(BIN)/python examples/digits.py

test: $(VENV)/test
	$(BIN)/python -m pytest

test-slow: $(VENV)/test
	$(BIN)/python -m pytest -m slow

lint: $(VENV)/lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Speed and memory; DATA, a folder of DS-XX_name.npz files, is optional.
bench: $(VENV)/core
	$(BIN)/python benchmarks/speed.py $(if $(DATA),--data $(DATA))
	$(BIN)/python benchmarks/memory.py

# The paper's numbers: DATA is a folder of DS-XX_name.npz files with X and y.
paper: $(VENV)/core
	$(BIN)/python benchmarks/paper_tables.py $(DATA)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/core: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/test $(VENV)/lint: $(VENV)/%: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[$*]"
	@touch $@

clean:
	rm -rf $(VENV) build dist
