# make run   installs what is missing, builds, and generates from the bundled checkpoint
# make test  builds and runs every test
# See README.md; `make help` lists the rest.

PROGRAM := build/release/foresay
MODEL ?=
RUNS ?= 10000
PROMPT ?= Write a Python function that reads a file
export PATH := $(PATH):$(HOME)/.cargo/bin

.PHONY: run build test asan fuzz bench bench-kernels format check-format clean help

run: build  ## Generate from the bundled checkpoint (MODEL=folder PROMPT=text change it)
	@$(PROGRAM) generate $(MODEL) --chat --prompt '$(PROMPT)' --max-tokens 128 --compare

build: build/release/build.ninja  ## Build the program, release
	@cmake --build --preset release --target foresay -- --quiet

# Tests include the MLX lane, from the wheel in .venv. A folder that was configured before .venv came does not know of
# it, so these configure again: a second where nothing changed.
test: .venv/.ready build/.setup-tests build/release/build.ninja  ## Build and run every test
	@$(call configure,release)
	@cmake --build --preset release
	@ctest --preset release

# But for those that measure rates over long runs, long runs of the 4-bit checkpoint that the bf16 one makes too, random
# mixtures where packed ones are enough, and folders of a released size (CMakePresets.json): what they run, other tests
# run here.
asan: .venv/.ready build/asan/build.ninja  ## Tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@$(call configure,asan)
	@cmake --build --preset asan
	@ctest --preset asan

# Repeatable: each target reads as many inputs as RUNS says, made from its corpus. RUNS=0 goes on for ever.
fuzz: build/.setup-fuzz build/fuzz/build.ninja  ## Readers of files under libFuzzer (RUNS=10000 TARGETS='config index')
	@$(call configure,fuzz)
	@cmake --build --preset fuzz
	@tools/fuzz.sh $(RUNS) $(TARGETS)

bench: build  ## The targets of docs/performance.md against llama.cpp, in turns (ARGS='--rounds 5 --docs')
	@bench/run.py $(ARGS)

bench-kernels: build/release/build.ninja  ## Matrix products by format, rows and instruction set (ARGS=--benchmark_filter=...)
	@cmake --preset release -DFORESAY_BENCH=ON >build/release.log || { cat build/release.log; exit 1; }
	@cmake --build --preset release --target kernels_bench -- --quiet
	@build/release/kernels_bench $(ARGS)

configure = cmake --preset $(1) >build/$(1).log || { cat build/$(1).log; exit 1; }

build/%/build.ninja: build/.setup CMakePresets.json
	@$(call configure,$*)

build/.setup: tools/setup.sh
	@mkdir -p build && tools/setup.sh && touch $@

build/.setup-tests: tools/setup.sh build/.setup
	@tools/setup.sh tests && touch $@

build/.setup-fuzz: tools/setup.sh build/.setup
	@tools/setup.sh fuzz && touch $@

SOURCES = $(shell git ls-files --cached --others --exclude-standard '*.h' '*.cpp')

format: .venv/.ready  ## Format every source with the pinned clang-format
	@.venv/bin/clang-format -i $(SOURCES)

check-format: .venv/.ready
	@.venv/bin/clang-format --dry-run -Werror $(SOURCES)

# The project's own Python: MLX for the lane of that name, clang-format, pytest.
.venv/.ready: tools/requirements.txt build/.setup
	@echo "installing tools/requirements.txt into .venv" >&2
	@python3 -m venv .venv && .venv/bin/pip -q install --disable-pip-version-check -r tools/requirements.txt && touch $@

clean:  ## Remove everything that was built
	rm -rf build .venv

help:
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-15s%s\n", $$1, $$2 }' Makefile
