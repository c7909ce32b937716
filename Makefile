# SPDX-License-Identifier: Apache-2.0
# Thin over meson and ninja. Needs nothing to begin with but make and git on Debian or Ubuntu: each target sets up what it uses.
#
#   make build      the command build/stoker, the library build/libstoker.so, the package in build/python
#   make demo       trains on Fashion-MNIST and runs the photo pipeline beside PyTorch; DATA=DIR for photos of your own
#   make test       every test
#   make bench      throughput beside seven other loaders (their environments: 6.5 GB, once), into docs/benchmarks.md and .svg
#   make bench-read DIR=FOLDER     how small files are best read; needs liburing
#   make bench-million             opening a million files; needs 4 GB in the temporary folder
#   make lint       formatters, linters, warnings as errors
#   make sanitize   C tests and the command under ASan + UBSan, then under TSan
#   make fuzz       each fuzz target for FUZZ_SECONDS
#   make install    PREFIX=/usr/local, DESTDIR=
#   make clean

SHELL := /bin/bash
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 30
export PATH := $(CURDIR)/build/env/bin:$(PATH)
export PYTHONDONTWRITEBYTECODE := 1

.PHONY: all setup build demo test bench bench-read bench-million lint sanitize fuzz install clean
all: build

setup:
	@scripts/setup.sh

build: setup
	@test -f build/build.ninja || meson setup build --prefix '$(PREFIX)'
	@ninja -C build

demo: build
	@PYTHONPATH=build/python python examples/demo.py $(if $(DATA),--data '$(DATA)')

test: build
	@meson test -C build --no-rebuild --print-errorlogs
	@python -m pytest tests -q -n auto --maxprocesses 4 $(PYTEST_ARGS)

bench: build
	@PYTHONPATH=build/python python bench/compare.py $(BENCH_ARGS)

bench-read:
	@mkdir -p build && $(CC) -O2 -o build/bench-read bench/read.c -luring -lpthread
	@build/bench-read '$(DIR)'

bench-million: build
	@PYTHONPATH=build/python python bench/million.py

lint:
	@scripts/setup.sh lint
	@scripts/lint.sh

sanitize:
	@scripts/setup.sh
	@scripts/sanitize.sh

fuzz:
	@scripts/setup.sh lint
	@scripts/fuzz.sh $(FUZZ_SECONDS)

install: build
	@meson configure build --prefix '$(PREFIX)'
	@meson install -C build --no-rebuild $(if $(DESTDIR),--destdir '$(DESTDIR)')

clean:
	rm -rf build build-* dist
