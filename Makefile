# What a contributor needs, from a fresh clone: Python 3.11 to 3.14 and make.

# Where Python keeps no bytecode (images of it often say so), each process that a test starts compiles all that it imports:
# as much again as the tests themselves.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
BIN := .venv/bin
PLAIN := $(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
DEMO ?= store/demo

# What is compiled or lies beside it, and what makes it so.
PACKED := pyproject.toml .ci/build_hook.py $(shell find sim faults scenarios reports highwater -type f ! -name '*.pyc')

.PHONY: bugs venv demo docs playground test-playground test tests lint wheel fast plain test-browser test-spark pictures test-compiled test-s3 bench hunt hunt-reuse hunt-settings hunt-shrink hunt-catalogue hunt-stores hunt-rates marks mutants attack fuzz claims explore distances oracle oracle-record audit-histories confirm clean

venv: .venv/installed

# Once, and again when a requirement changes. pip builds the wheel of pyspark, which takes as long as all the rest: both
# at once. Python compiles what is imported; all of it would take as long as installing.
.venv/installed: pyproject.toml .ci/constraints.txt
	@if test -L .venv -o -e .venv -a ! -e .venv/others.txt; then echo ".venv is there, and make did not make it: move it elsewhere"; exit 2; fi
	@echo "Installing into .venv (once; 1 to 3 minutes; 1.2 GB)"
	@$(PYTHON) -m venv --clear .venv
	@awk '/^[a-z]/ { part = /^pyspark=/ ? "spark" : "others" } part { print > (".venv/" part ".txt") }' .ci/constraints.txt
	@$(MAKE) --no-print-directory -j 2 .venv/spark.locked .venv/editable
	@$(BIN)/pip check --quiet --disable-pip-version-check
	@touch $@

.venv/editable: .venv/others.locked
	@$(PLAIN)
	@touch $@

.venv/%.locked:
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --no-deps --require-hashes -r .venv/$*.txt
	@touch $@

# The scripted scenarios in one line; the first story of KIP-101 in sentences; what ELR buys, by 4,000 random runs on Spark, with
# their report; a seed that it saves, as a page. A sweep that is already there is resumed; one of other code is refused: remove
# it, or choose another folder with DEMO=.
demo: venv
	@echo "1. Every scripted scenario (20 s), and the first loss of KIP-101"
	@$(BIN)/highwater run --all-scenarios
	@$(BIN)/highwater explain kip101-scenario-1 --mode hw --brief --most 6
	@echo "2. How many losses does ELR prevent? 2,000 seeds of elr-chaos in Kafka 3.9 (kraft) and 4.3 with ELR (elr-4.3), on Spark (1 to 4 minutes)"
	@$(BIN)/highwater sweep elr-chaos --modes kraft,elr-4.3 --seeds 0..2000 --output $(DEMO) --brief
	@$(BIN)/highwater report $(DEMO) -o $(DEMO)/report.html --triage 6 --local 2 -q >/dev/null
	@$(BIN)/highwater show $(DEMO) --mode kraft --seed 17 --against elr-4.3 --output $(DEMO)/17-kraft.html -q >/dev/null
	@echo "Open $(DEMO)/report.html (rates, causes) and $(DEMO)/17-kraft.html (a loss that ELR prevents, as a film)"
	@echo "Try next:  $(BIN)/highwater run reassignment-back --mode elr-4.3 --show $(DEMO)/reassignment-back.html"

lint: venv
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/mypy .ci/*.py .ci/playground/session.py notebooks/proposals/*.py
	$(BIN)/python .ci/docs.py
	$(if $(WORLD),$(BIN)/python .ci/translate.py)

# The documentation as a site in build/site, with the pages that are made from the code; a broken link is an error. The reviews
# of proposals take some minutes, once for each state of the code.
docs: venv
	$(BIN)/python .ci/docs.py --reviews

# Highwater in a browser: static files in build/playground (18 MB), and in the site, whose commands become links to it. Takes npm;
# fetches 10 MB, once.
playground: venv
	$(BIN)/python .ci/playground/build.py
	$(BIN)/python .ci/docs.py

# The playground in node, with digests, and in Chromium: half a minute. Says what cannot be tested here.
test-playground: venv
	$(BIN)/pytest -n 0 -rs tests/playground

# A file's tests stay in one process: those of Spark share a session. Types are checked beside them. WORLD=1 also runs what
# guards the world and not the change: whole searches, many seeds, kills.
test: venv
	$(MAKE) --no-print-directory -j 2 lint tests

tests: venv
	$(BIN)/pytest -n 2 --dist loadfile $(if $(WORLD),,-m "not world")

# A plain wheel, and a compiled one for each of Python 3.11 to 3.14 that is here, in dist. Compiling takes a C
# compiler and three or four minutes for each.
wheel: venv
	$(BIN)/python .ci/wheels.py

# The compiled build of this Python, unpacked.
build/compiled/done: .venv/installed $(PACKED)
	rm -rf build/compiled build/wheel
	HIGHWATER_COMPILE=profiled $(BIN)/python -m hatchling build -t wheel -d build/wheel
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-index --target build/compiled build/wheel/*.whl
	touch $@

# The compiled build into .venv: .venv/bin/highwater gives the same rows in half the time. It is a copy, and refuses to run
# once the sources have changed. `make plain` goes back to the sources.
fast: build/compiled/done
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-index --force-reinstall build/wheel/*.whl

plain: venv
	$(PLAIN)

# Tests of what is compiled, on the compiled build.
test-compiled: build/compiled/done
	rm -rf build/compiled/tests
	cp -r tests pyproject.toml build/compiled
	cd build/compiled && ../../$(BIN)/python -c "from scenarios.version import build; assert build() != 'plain'"
	cd build/compiled && PYTHONPATH=$(CURDIR)/build/compiled ../../$(BIN)/pytest -n 2 --dist loadfile \
		tests/golden tests/scenarios tests/highwater/lab/advise tests/highwater/lab/explore tests/verification/conformance \
		tests/test_determinism.py

# Each version of pyspark that sweeps take, installed in build/spark (500 MB each): tests, sweeps, Connect, a standalone cluster, the
# data source, streams, tables, and kills of drivers, executors and servers; a quarter of an hour for each. ONLY=3.5.9 chooses one,
# COLUMNS=resume,stream what is tried, KEEP=1 keeps the results and their table in the guide.
test-spark: venv
	$(BIN)/python -m tests.verification.spark_versions $(ONLY) $(if $(COLUMNS),--columns $(COLUMNS)) $(if $(KEEP),--keep)

# A report and a picture in headless Chromium; says so where there is none.
test-browser: venv
	$(BIN)/python -m tests.verification.browser

# The pictures of the first page, from the sweep of `make demo`.
pictures: venv
	$(BIN)/python -c "import highwater as hw; hw.compare('$(DEMO)', kind='committed-loss').plots(inside=False)[0].save('notebooks/pictures/rates.svg')"
	$(BIN)/highwater draw kip101-scenario-1 --mode hw --output notebooks/pictures/run.svg

# Without a compiler, of the sources alone.
bench: venv
	-$(MAKE) build/compiled/done
	$(BIN)/python -m tests.verification.bench $$(test -e build/compiled/done && echo --against build/compiled)

# An hour: 50,000 seeds of `chaos` in each release and in kip320-repaired, which must keep its promise; every
# violation inside that of kip320 explained by repairs; the independent checker on the failures; 32,000 plans with and
# without elision; pairs of rules that decided nothing; 200 runs
# and their copies; 200 failures without the faults outside their causal past; latencies of 1,000 plans
# of which something is left out; seeds until each mutant and each bug of Kafka is found.
hunt: venv
	$(BIN)/python -m tests.verification.hunt.explained
	$(BIN)/python -m tests.verification.hunt.reference
	$(BIN)/python -m tests.verification.hunt.elision
	$(BIN)/python -m tests.verification.hunt.elision --scenario elr-chaos --modes kraft,elr,elr-4.3,elr-recovery --seeds 8000
	$(BIN)/python -m tests.verification.hunt.elision --scenario quorum --modes kraft,elr,elr-4.3 --seeds 4000
	$(BIN)/python -m tests.verification.hunt.elision --scenario datacenter --modes kraft,elr,elr-4.3 --seeds 4000
	$(BIN)/python -m tests.verification.hunt.elision --scenario reassignments --modes elr-4.3,elr-repaired --seeds 4000
	$(BIN)/python -m tests.verification.hunt.elision --scenario operations --modes kraft,elr,elr-4.3,elr-repaired --seeds 3000
	$(BIN)/python -m tests.verification.hunt.elision --scenario messages --modes kip320,kraft,elr-4.3,elr-repaired --seeds 3000
	$(BIN)/python -m tests.verification.hunt.elision --scenario overtaking --modes kip320,kraft,elr-4.3,elr-repaired --seeds 3000
	$(BIN)/python -m tests.verification.hunt.deciding
	$(BIN)/python -m tests.verification.hunt.copies
	$(BIN)/python -m tests.verification.hunt.causal
	$(BIN)/python -m tests.verification.hunt.latencies
	$(BIN)/highwater zoo hunt --all --seeds 0..30000 --budget 60s --local 2

# Some hours: rows that a sweep takes over from another mode, against those of runs, over eight pairs of modes, twenty changed
# rules and seventeen values of a plug-in. ROWS= chooses how many (100,000), ONLY=plugins or ONLY=others which, FIRST= a seed,
# PROCESSES= how many (2).
hunt-reuse: build/compiled/done
	rm -rf build/compiled/tests
	cp -r tests build/compiled
	cd build/compiled && PYTHONPATH=$(CURDIR)/build/compiled ../../$(BIN)/python -m tests.verification.hunt.reusing $(if $(ROWS),--rows $(ROWS)) \
		$(if $(ONLY),--only $(ONLY)) $(if $(FIRST),--first $(FIRST)) $(if $(PROCESSES),--processes $(PROCESSES))

# A quarter of an hour: all claims, judged by SEEDS= (0..2000) of the compiled build.
claims: build/compiled/done
	cd build/compiled && PYTHONPATH=$(CURDIR)/build/compiled ../../$(BIN)/python -m highwater claims --seeds $(or $(SEEDS),0..2000)

# Some hours: CPU seconds until each mutant and each bug of Kafka is found, in five ranges of seeds, with walks and with runs
# of the compiled build. ONLY= names some of them, SECONDS= bounds each range.
marks: build/compiled/done
	-cd build/compiled && PYTHONPATH=$(CURDIR)/build/compiled ../../$(BIN)/python -m highwater zoo hunt --method walks $(HUNTED)
	cd build/compiled && PYTHONPATH=$(CURDIR)/build/compiled ../../$(BIN)/python -m highwater zoo hunt --method runs $(HUNTED)
HUNTED = $(or $(ONLY),--all) --seeds 60000000..65000000 --ranges 5 --budget $(or $(SECONDS),60)s --format markdown

# An hour or two: SEED= draws MUTANTS= (300) plausible mistakes in one place each; random runs in the repaired modes hunt each for
# SECONDS= (20) CPU seconds. The same command goes on where it stopped.
mutants: venv
	$(BIN)/python -m tests.verification.mutants --seed $(or $(SEED),1) $(if $(MUTANTS),--mutants $(MUTANTS)) $(if $(SECONDS),--seconds $(SECONDS))

# Hours: 50,000 runs of drawn scenario files with drawn settings in clusters of any shape, of the compiled build, each in a
# process of its own. None may end with an error, or take more than 30 s or 500 MB; histories are equal with and without
# elision. FIRST= and RUNS= choose.
hunt-settings: build/compiled/done
	rm -rf build/compiled/tests
	cp -r tests pyproject.toml build/compiled
	cd build/compiled && PYTHONPATH=$(CURDIR)/build/compiled ../../$(BIN)/python -m tests.verification.hunt.settings --folder $(CURDIR)/build/hunt-settings \
		$(if $(FIRST),--first $(FIRST)) $(if $(RUNS),--runs $(RUNS))

# An hour: 210 failures of five drawn scenarios in six modes are shrunk, and each result is looked at; then what is said to
# be necessary is left out of them, piece by piece, and held against chance.
hunt-shrink: venv
	$(BIN)/python -m tests.verification.hunt.shrink
	$(BIN)/python -m tests.verification.hunt.necessary

# Some minutes: seeds that show known bugs are shrunk and explained; the right repair and moment must be named.
hunt-catalogue: venv
	$(BIN)/python -m tests.verification.hunt.catalogue

# 5,000 strange command lines, scenario files, plans, stores and metadata logs: some minutes.
fuzz: venv
	$(BIN)/python -m tests.verification.hunt.fuzz --cases 5000

# Sweeps into an object store: fetches a server to run on loopback, and what Spark needs for it.
test-s3: venv
	test -x .venv-s3/bin/moto_server || ($(PYTHON) -m venv .venv-s3 && .venv-s3/bin/pip install --quiet 'moto[server]>=5.1')
	HIGHWATER_S3_SERVER=$(CURDIR)/.venv-s3/bin/moto_server $(BIN)/pytest -n 0 tests/remote/s3_checks.py

# Ten minutes, compiled: losses per partition-year of six clusters, by incidents and by direct runs. INCIDENTS=, RUNS=, ONLY= (a
# number) and PROCESSES= choose.
hunt-rates: build/compiled/done
	rm -rf build/compiled/tests
	cp -r tests build/compiled
	cd build/compiled && PYTHONPATH=$(CURDIR)/build/compiled ../../$(BIN)/python -m tests.verification.losses \
		$(if $(INCIDENTS),--incidents $(INCIDENTS)) $(if $(RUNS),--runs $(RUNS)) $(if $(ONLY),--only $(ONLY)) \
		$(if $(PROCESSES),--local $(PROCESSES))

# Forty tries with two drivers on one folder, one of them killed, stopped or interrupted, and some hundred damaged stores:
# half an hour.
hunt-stores: venv
	$(BIN)/python -m tests.verification.hunt.owners
	$(BIN)/python -m tests.verification.hunt.damaged

# Ten minutes: a sample of several drivers on one store, full disks, killed workers, bad environments, random settings and
# random input. MINUTES=, ONLY= (a part) and SEED= choose.
attack: venv
	$(BIN)/python -m tests.verification.hunt.attack $(if $(MINUTES),--minutes $(MINUTES)) $(if $(ONLY),--only $(ONLY)) $(if $(SEED),--seed $(SEED))

# Every order of events in clusters of two and three brokers: which modes can lose or diverge, and which cannot. Hours; ONLY= chooses
# (zookeeper, reductions, kraft, marks). Without a compiler, of the sources alone.
explore: venv
	-$(MAKE) build/compiled/done
	test ! -e build/compiled/done || { rm -rf build/compiled/tests; cp -r tests build/compiled; }
	cd $$(test -e build/compiled/done && echo build/compiled || echo .) && \
		PYTHONPATH=$$PWD $(CURDIR)/$(BIN)/python -m tests.verification.explore $(if $(ONLY),--only $(ONLY))

# A few minutes: fixed bugs of Kafka by their rules, before and after, on SEEDS= (0..200) of random scenarios; WRITE=1 keeps the figures.
bugs: venv
	$(BIN)/python -m tests.verification.bugs --seeds $(or $(SEEDS),0..200) $(if $(WRITE),--write)

# Three minutes: the distances of `highwater audit`, their stories played by the simulation, and an exhaustive search beside them.
distances: venv
	$(BIN)/python -m tests.verification.distances --partitions 100 --walks 400

# The core against Kafka's released classes on drawn operations: 20 minutes, QUICK=1 three; DEEP=1 goes on where it stopped.
# SUBJECT=, RELEASE=, SEED= and CASES= choose. The first run fetches 224 MB of jars.
oracle: venv
	$(BIN)/python -m tests.verification.oracle $(if $(QUICK),--quick) $(if $(DEEP),--deep) $(if $(SUBJECT),--subject $(SUBJECT)) \
		$(if $(RELEASE),--release $(RELEASE)) $(if $(SEED),--seed $(SEED)) $(if $(CASES),--cases $(CASES))

# What Kafka answers in a few cases of each subject and release, for `make test`.
oracle-record: venv
	$(BIN)/python -m tests.verification.oracle --record $(if $(SUBJECT),--subject $(SUBJECT)) $(if $(RELEASE),--release $(RELEASE))

# Audits of metadata logs that Kafka's controller classes wrote in drawn histories, true and altered: half an hour.
# RELEASE=, FIRST= (a seed) and HISTORIES= choose. The first run fetches what `make oracle` does.
audit-histories: venv
	$(BIN)/python -m tests.verification.audit $(if $(RELEASE),--release $(RELEASE)) $(if $(FIRST),--first $(FIRST)) \
		$(if $(HISTORIES),--histories $(HISTORIES))

# Scripted scenarios on real brokers of the releases that they are about, beside the simulation: the fastest, 18 minutes.
# SCENARIO= and RELEASE= choose, REPEAT= runs all, each so many times; runs are noted in tests/verification/confirm/runs.jsonl. The first one
# fetches what `make oracle` does.
confirm: venv
	$(BIN)/python -m tests.verification.confirm $(if $(SCENARIO),--scenario $(SCENARIO)) $(if $(RELEASE),--release $(RELEASE)) \
		$(if $(REPEAT),--repeat $(REPEAT)) $(if $(SCENARIO)$(RELEASE)$(REPEAT),,--minutes 18)

# What make, its tools and a build have made here, and nothing else: `dist` and `store` may hold what was put there.
clean:
	test -L .venv -o ! -e .venv/others.txt || rm -rf .venv
	rm -rf .venv-s3 .hypothesis .mypy_cache .pytest_cache .ruff_cache build/compiled build/docs build/packages build/playground build/reviews build/site build/spark build/wheel build/python3.1[1234]
