PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
PYTHON312 = $(shell python3.12 -c "import sys; print(sys.executable)" 2>/dev/null)

.PHONY: demo test test-slow test-machines test-browser test-mutations fuzz lint docs release-check test-lowest bench bench-scale paper figures clean

# Three consensus functions beside k-means on embedded data, then everything once; the
# last line is the path of the report.
demo: $(VENV)/demo
	$(BIN)/python examples/digits.py
	$(BIN)/mdec demo --jobs 2

test: $(VENV)/test
	$(BIN)/python -m pytest -n 2

# The newest AnnData and scanpy need Python 3.12, and hold other packages back: their tests
# have an environment of their own.
test-slow: $(VENV)/test $(VENV)-scanpy/test
	$(BIN)/python -m pytest -m slow
	$(VENV)-scanpy/bin/python -m pytest -m "slow or not slow" tests/anndata tests/tables/test_containers.py

# The tests as on other processors, and as other users in other folders; 15 minutes.
test-machines: $(VENV)/test
	$(BIN)/python benchmarks/machines.py

# Needs chromium and chromedriver.
test-browser: $(VENV)/test docs
	$(BIN)/python -m pip install --quiet selenium
	$(BIN)/python -m pytest -m browser

# Small changes of the science that the tests must notice; about an hour.
test-mutations: $(VENV)/test
	$(BIN)/python benchmarks/mutations.py --sample 200 --jobs 2 --again

# Damaged and made-up files for every reader; minutes.
fuzz: $(VENV)/test
	$(BIN)/python benchmarks/fuzz.py --inputs 1000

lint: $(VENV)/lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The site, in docs/_build/html; tutorials and gallery run, every link is followed, and
# the words are counted.
docs: $(VENV)/docs
	rm -rf docs/_build/html docs/api/generated
	$(BIN)/python -m sphinx -W --keep-going -q -d docs/_build/doctrees docs docs/_build/html
	$(BIN)/python docs/_site/check.py docs/_build/html
	$(BIN)/python docs/_site/words.py

# Wheel and sdist as a stranger gets them; PYTEST_ARGS narrows the tests of the sdist.
release-check: $(VENV)/release
	$(BIN)/python .ci/release_check.py $(PYTEST_ARGS)

# The tests with the lowest versions that pyproject.toml allows.
test-lowest: $(VENV)-lowest/test
	$(VENV)-lowest/bin/python -m pytest -n 2 $(PYTEST_ARGS)

# Speed and memory; DATA, a folder of DS-XX_name.npz files, is optional.
bench: $(VENV)/core
	$(BIN)/python benchmarks/speed.py $(if $(DATA),--data $(DATA))
	$(BIN)/python benchmarks/memory.py

# Landmarks at scale: half an hour, 6 GB of disk; DATA as above.
bench-scale: $(VENV)/test
	for part in "million mixture" "million digits" wide growth larger-than-memory \
		"compare mixture" "compare digits" "compare wide" cluster model; do \
		$(BIN)/python benchmarks/scale.py $$part || exit; done
	$(if $(DATA),$(BIN)/python benchmarks/scale.py images $(DATA))

# The paper's numbers, hours of work: RAW is a folder of raw files, else the user's own.
paper: $(VENV)/demo
	$(if $(RAW),MDEC_DATA=$(RAW)) $(BIN)/mdec bench run paper-tables
	$(BIN)/mdec bench report paper-tables.jsonl

# The figures of docs/confidence.md, and of docs/choosing-k.md.
figures: $(VENV)/core
	for part in confidence predict unlike; do \
		$(BIN)/python benchmarks/people_figures.py $$part $(DATA) || exit; done
	for part in ensembles sets rules noise time; do \
		$(BIN)/python benchmarks/choosing_k.py $$part --data $(DATA) \
			--cells $(CELLS) --cache $(CACHE) || exit; done

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/core: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/demo: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[cli,report,data,app]"
	@touch $@

# Any PyTorch will do, also one without a card; TORCH= leaves its tests out.
TORCH ?= torch==2.13.0
$(VENV)/test: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[test]" $(TORCH)
	@touch $@

$(VENV)-scanpy/test: pyproject.toml
	$(or $(PYTHON312),$(PYTHON)) -m venv $(VENV)-scanpy
	$(VENV)-scanpy/bin/python -m pip install --quiet --editable ".[cli,report,data,anndata]" pytest scanpy
	@touch $@

$(VENV)/lint: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[lint]"
	@touch $@

$(VENV)/release: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[release]"
	@touch $@

$(VENV)-lowest/test: pyproject.toml tests/lowest.txt
	$(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/python -m pip install --quiet --constraint tests/lowest.txt --editable ".[test]"
	@touch $@

$(VENV)/docs: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[docs]"
	@touch $@

clean:
	rm -rf $(VENV) $(VENV)-scanpy $(VENV)-lowest build dist docs/_build docs/gallery docs/tutorials docs/api/generated
