# make run   installs what is missing, builds, and generates from the bundled checkpoint
# make test  builds and runs every test
# See README.md; `make help` lists the rest.

PROGRAM := build/release/foresay
MODEL ?=
PROMPT ?= Write a Python function that reads a file
export PATH := $(PATH):$(HOME)/.cargo/bin

.PHONY: run build test asan format check-format clean help

run: build  ## Generate from the bundled checkpoint (MODEL=folder PROMPT=text change it)
	@$(PROGRAM) generate $(MODEL) --chat --prompt '$(PROMPT)' --max-tokens 128 --compare

build: build/release/build.ninja  ## Build the program, release
	@cmake --build --preset release --target foresay -- --quiet

test: build/release/build.ninja  ## Build and run every test
	@cmake --build --preset release
	@ctest --preset release

asan: build/asan/build.ninja  ## Every test under AddressSanitizer and UndefinedBehaviorSanitizer
	@cmake --build --preset asan
	@ctest --preset asan

build/%/build.ninja: build/.setup CMakePresets.json
	@cmake --preset $* >build/$*.log || { cat build/$*.log; exit 1; }

build/.setup: tools/setup.sh
	@mkdir -p build && tools/setup.sh && touch $@

SOURCES = $(shell git ls-files --cached --others --exclude-standard '*.h' '*.cpp')

format: .venv/clang-format  ## Format every source with the pinned clang-format
	@.venv/bin/clang-format -i $(SOURCES)

check-format: .venv/clang-format
	@.venv/bin/clang-format --dry-run -Werror $(SOURCES)

.venv/clang-format: tools/requirements.txt
	@python3 -m venv .venv && .venv/bin/pip -q install "$$(grep '^clang-format==' tools/requirements.txt)" && touch $@

clean:  ## Remove everything that was built
	rm -rf build .venv

help:
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 14
