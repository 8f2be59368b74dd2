PYTHON ?= python3
BIN := .venv/bin
RUNTIME := .venv/.runtime
STAMP := .venv/.installed
DIST := .venv-dist/bin
INSTALL := -m pip install --quiet --disable-pip-version-check
NATIVE := $(wildcard src/crossfusion/*/*.[ch])
CORE := tests/_base tests/moments/test_moments.py tests/moments/test_lazy_rows.py tests/fusion/test_mathematics.py \
	tests/arrays tests/inference/test_intervals.py tests/inference/test_permutation.py tests/summary/test_summary.py \
	tests/summary/test_queries.py tests/summary/test_golden.py tests/test_imports.py tests/test_public_api.py \
	tests/test_architecture.py --deselect=tests/summary/test_summary.py::test_a_hundred_thousand_groups \
	--deselect=tests/summary/test_summary.py::test_flipped_bits_are_noticed_or_harmless_but_never_a_crash

.PHONY: demo test quick lint types layers tests test-native stress docs bench coverage reproduce real-study training-study example-scanners \
	example-report example-plots example-readme test-min test-new golden sbom dist check-dist clean

demo: $(RUNTIME) ## run the main job on built-in data and leave a report
	$(BIN)/crossfusion demo --out demo

test: lint types layers test-native tests ## everything that must hold

quick: lint types layers ## lint, types, layers and the tests of the core, in about two minutes
	$(BIN)/pytest -n 2 $(CORE)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

layers: $(STAMP)
	$(BIN)/lint-imports

tests: $(STAMP) .venv/.browser
	$(BIN)/pytest -n 2 --dist loadgroup

test-native: $(STAMP) ## the C extensions with sanitizers: their tests, the laws of moments, and a fuzz of arguments
	$(BIN)/python -m tools.native

stress: $(STAMP) ## bad input and faults, drawn anew, for ten minutes
	$(BIN)/python -m tests.stress --minutes 10

docs: $(STAMP) ## the site, with tutorials run and links checked; fails on any warning
	rm -rf docs/_build/html docs/api docs/tutorials
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	$(BIN)/python tools/check_links.py docs/_build/html

bench: bench-moments bench-distances bench-permutations bench-intervals bench-corners bench-scale bench-drift bench-report bench-integration bench-startup ## measure speed, as ratios, and keep what the docs show

bench-%: $(STAMP)
	$(BIN)/python -m benchmarks $* > docs/bench_$*.tmp
	mv docs/bench_$*.tmp docs/bench_$*.txt
	cat docs/bench_$*.txt

bench-integration: $(STAMP) ## with the picture of the leaderboard; needs the data (CROSSFUSION_DATA) for real cells
	mkdir -p docs/single_cells
	$(BIN)/python -m benchmarks integration --plot docs/single_cells/leaderboard.png > docs/bench_integration.tmp
	mv docs/bench_integration.tmp docs/bench_integration.txt
	cat docs/bench_integration.txt

coverage: $(STAMP) ## whether intervals and tests hold; goes on where it was interrupted
	$(BIN)/python -m benchmarks coverage --out coverage-study
	mkdir -p docs/coverage
	cp coverage-study/coverage.md coverage-study/coverage.json docs/coverage
	cp coverage-study/coverage.png coverage-study/tests.png docs/coverage

reproduce: $(STAMP) ## every study of the paper and the verdict on each claim; goes on where it was interrupted
	$(BIN)/python -m paper claims --out reproduction
	mkdir -p docs/reproduction
	cp reproduction/claims.md docs/claims.md
	cp reproduction/runtime/runtime.md reproduction/runtime/runtime.png docs/reproduction
	cp reproduction/decomposition/decomposition.png docs/reproduction
	cp reproduction/synthetic/figures/relative-d128-n300.png docs/reproduction
	cp reproduction/synthetic/figures/beyond-d128-n300.png docs/reproduction
	$(BIN)/python examples/readme_pictures.py

real-study: $(STAMP) ## distances on real data; needs the data (CROSSFUSION_DATA); goes on where it was interrupted
	$(BIN)/python -m paper real --out reproduction/real
	mkdir -p docs/real
	rm -f docs/real/*
	cp reproduction/real/reading.md reproduction/real/tables/*.md reproduction/real/*.png docs/real
	for set in mitos_he sc_mixology pacs office_caltech office_caltech_surf; do \
		cp reproduction/real/$$set/scatter.png docs/real/$$set.png; done
	for part in rdr cddr; do cp reproduction/real/mitos_he/$$part.md docs/real/mitos_he_$$part.md; done

training-study: $(STAMP) ## training against distances; tables of embeddings too where the data are (CROSSFUSION_DATA)
	$(BIN)/python -m paper training --out reproduction/training
	mkdir -p docs/training
	rm -f docs/training/*
	cp reproduction/training/reading.md reproduction/training/tables/*.md reproduction/training/*.png docs/training

test-min test-new: test-%: .venv-%/.installed .venv/.browser ## all tests with the lowest, or the newest, versions allowed
	.venv-$*/bin/pytest -n 2 --dist loadgroup -W default $(TESTS)

golden: $(STAMP) ## keep what this version writes, for all later ones to read; never changes what is there
	$(BIN)/python -m tests.helpers.golden_files

sbom: $(STAMP) ## licences of everything that is needed
	$(BIN)/python -m tools.licences docs

dist: .venv-dist/.installed ## sdist and wheel of the last commit
	$(DIST)/python -m tools.dist dist

check-dist: dist ## the same bytes elsewhere, nothing missing, and the wheel works without a compiler and a network
	$(DIST)/python -m tools.check_dist dist
	$(DIST)/python -m tools.check_offline dist/*.whl dist/*.tar.gz .venv-dist/wheels

example-report: demo .venv/.browser ## pictures of the demo's report for the docs
	$(BIN)/python examples/report_picture.py demo/report.html --out docs/report

example-readme: $(STAMP) ## pictures of the README, from the demo and from measurements in docs
	$(BIN)/python examples/readme_pictures.py

example-plots: $(STAMP) ## pictures of the page on plots, by its own examples
	$(BIN)/python examples/page_pictures.py docs/plots.md

example-scanners: $(STAMP) ## the same tissue on two scanners; needs the data, see examples/scanners.py
	$(BIN)/python examples/scanners.py --out examples/out
	mkdir -p docs/examples
	cp examples/out/scanners_table.md examples/out/staingan_table.md examples/out/scanners.png docs/examples

$(RUNTIME): pyproject.toml constraints.txt $(NATIVE) # what the package needs, without optional libraries
	$(PYTHON) -m venv .venv
	$(BIN)/python $(INSTALL) -c constraints.txt -e ".[separability]"
	touch $@

$(STAMP): $(RUNTIME) # the rest: tests, docs and every optional library
	$(BIN)/python $(INSTALL) -c constraints.txt torch
	$(BIN)/python $(INSTALL) -c constraints.txt -e '.[test,docs]'
	touch $@

.venv-dist/.installed: tools/requirements.txt
	$(PYTHON) -m venv .venv-dist
	$(DIST)/python $(INSTALL) -r tools/requirements.txt
	touch $@

.venv-min/versions.txt: pyproject.toml tools/torch.txt .venv-dist/.installed
	mkdir -p .venv-min
	$(DIST)/uv pip compile --quiet --no-annotate --resolution lowest-direct --python-version 3.11 \
		--extra test -c tools/torch.txt -o $@ pyproject.toml

.venv-new/versions.txt: pyproject.toml tools/torch.txt
	mkdir -p .venv-new
	cp tools/torch.txt $@

.venv-%/.installed: .venv-%/versions.txt
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/python $(INSTALL) -c $< torch
	.venv-$*/bin/python $(INSTALL) -c $< -e '.[test]'
	touch $@

.venv/.browser: $(STAMP) # pages are tested in Debian's Chromium
	command -v chromium >/dev/null || \
		{ apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium fonts-dejavu-core; } || \
		{ echo "the tests of pages need Chromium: install the package chromium, then run make test again"; exit 1; }
	touch $@

clean:
	rm -rf .venv .venv-* dist demo docs/_build docs/api docs/tutorials bench-peers
