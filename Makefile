PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: demo test lint types layers tests docs bench clean

demo: $(STAMP) ## run the main job on built-in data and leave a report
	$(BIN)/crossfusion demo --out demo

test: lint types layers tests ## everything that must hold

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

layers: $(STAMP)
	$(BIN)/lint-imports

tests: $(STAMP) .venv/.browser
	$(BIN)/pytest -n 2

docs: $(STAMP)
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

bench: $(STAMP)
	$(BIN)/crossfusion bench moments > docs/bench_moments.tmp
	mv docs/bench_moments.tmp docs/bench_moments.txt
	cat docs/bench_moments.txt

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test,docs]'
	touch $@

.venv/.browser: $(STAMP) # pages are tested in Debian's Chromium
	command -v chromium >/dev/null || \
		{ apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium fonts-dejavu-core; } || \
		{ echo "the tests of pages need Chromium: install the package chromium, then run make test again"; exit 1; }
	touch $@

clean:
	rm -rf .venv demo docs/_build
