# What a contributor needs, from a fresh clone: Python 3.11 to 3.13 and make.

PYTHON ?= python3
BIN := .venv/bin
DRAWN := chaos elr-chaos partitions power rolling sessions
SCRIPTED := $(filter-out $(DRAWN),$(basename $(notdir $(wildcard scenarios/files/*.toml))))

.PHONY: venv demo test lint compiled bench hunt hunt-settings fuzz tiny clean

venv: .venv/installed

# Once, and again when a requirement changes.
.venv/installed: pyproject.toml .ci/constraints.txt
	$(PYTHON) -m venv --clear .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c .ci/constraints.txt -e '.[spark,jre,report,dev]'
	touch $@

# The scripted scenarios in all modes that they expect something of, 20,000 drawn runs on Spark, and the comparison of
# four releases.
demo: venv
	rm -rf store/demo
	for scenario in $(SCRIPTED); do $(BIN)/highwater run $$scenario || exit; done
	$(BIN)/highwater sweep power --modes hw,kip101,kip320,elr --seeds 0..5000 --output store/demo
	$(BIN)/highwater compare store/demo

lint: venv
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

# A file's tests stay in one process: those of Spark share a session.
test: lint
	$(BIN)/pytest -n 2 --dist loadfile

# What a run consists of as machine code, in a directory of its own: the same rows in half the time. It takes a C compiler
# and some minutes.
compiled: .compiled/done

.compiled/done: .venv/installed $(wildcard sim/*.py sim/*/*.py faults/*.py scenarios/*.py scenarios/files/*.toml reports/*.py)
	$(BIN)/python -m tests.bench.compiled .compiled
	touch $@

# Without a compiler, of the sources alone.
bench: venv
	-$(MAKE) compiled
	$(BIN)/python -m tests.bench --compiled .compiled

# An hour: 50,000 seeds of `chaos` in each release and in kip320-repaired, which must keep its promise; every
# violation inside that of kip320 explained by repairs; the independent checker on the failures; 20,000 plans with and
# without elision; 200 failures without the faults outside their causal past; seeds to the first hit of each known bug.
hunt: venv
	$(BIN)/python -m tests.hunt.explained
	$(BIN)/python -m tests.hunt.slow
	$(BIN)/python -m tests.hunt.elision
	$(BIN)/python -m tests.hunt.causal
	$(BIN)/python -m tests.hunt.finds

# An hour and a half: 50,000 runs of drawn scenarios with drawn settings in clusters of any shape. None may end with an
# error; with fixed latencies their histories are equal with and without elision.
hunt-settings: venv
	$(BIN)/python -m tests.hunt.settings

# 5,000 strange command lines, scenario files, plans and stores: some minutes.
fuzz: venv
	$(BIN)/python -m tests.hunt.fuzz --cases 5000

# Every order of events in clusters of two and three brokers: which modes can lose or diverge, and which cannot.
tiny: venv
	$(BIN)/python -m tests.tiny

clean:
	rm -rf .venv .compiled .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist store/demo
