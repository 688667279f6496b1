# SPDX-License-Identifier: Apache-2.0
#
# The front door. The build itself is meson's: see meson.build. `make help` lists what there is.
#
#   build        what is run and installed: optimised, with debug information and assertions
#   build-asan   the unit tests' build: address and undefined-behaviour sanitizers
#   build-*      what `make check` needs: both compilers with -Werror, the thread sanitizer, the fuzz targets

PREFIX  ?= /usr/local
DESTDIR ?=
LISTEN  ?= 127.0.0.1:8080
DATA    ?= data
SPEED   ?= 360
SECONDS ?= 10
PYTHON  := /usr/bin/python3
comma   := ,

# An error that a sanitizer finds ends the program that has it.
SANITIZED := -Db_lundef=false -Dc_args=-fno-sanitize-recover=all -Dtests=enabled
export ASAN_OPTIONS  := detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1
export UBSAN_OPTIONS := halt_on_error=1:print_stacktrace=1
export TSAN_OPTIONS  := halt_on_error=1:second_deadlock_stack=1

# The unit tests that use threads.
THREADED := $(foreach t,alarm aws aws_identity broker cloud csp disk fetch http_server jobs kernel notify policy_document pump saga schedule store webhook,$(if $(wildcard tests/unit/test_$(t).c),$(t)))

.PHONY: all build run test t sim check fmt bench fuzz install docs setup clean help
all: build

build: build/build.ninja ## build the program: build/leasehold
	@ninja -C build --quiet

# Only warnings are logged, so that what it says at the start stays on the screen: make run LOG_LEVEL=INFO shows the rest.
run: ## install what is missing, build and start it for trying out, on LISTEN=127.0.0.1:8080 with DATA=data, SPEED=360 times as fast
	@scripts/setup run
	@test -e build/leasehold || echo "building; this takes a minute the first time"
	@$(MAKE) --no-print-directory build
	@LEASEHOLD_TIME_SCALE=$${LEASEHOLD_TIME_SCALE:-$(SPEED)} LOG_LEVEL=$${LOG_LEVEL:-WARNING} \
		exec build/leasehold serve --dev --listen $(LISTEN) --data $(DATA)

test: ## install what is missing, run all tests
	@scripts/setup test
	@$(MAKE) --no-print-directory unit
	@$(MAKE) --no-print-directory build
	meson test -C build --no-rebuild --print-errorlogs --suite sim
	LEASEHOLD_BIN=$(CURDIR)/build/leasehold PYTHON=$(PYTHON) scripts/server-tests
	LEASEHOLD_BIN=$(CURDIR)/build/leasehold scripts/browser-tests

.PHONY: unit
unit: build-asan/build.ninja
	ninja -C build-asan --quiet
	meson test -C build-asan --no-rebuild --print-errorlogs

t: build-asan/build.ninja ## run the unit tests whose name contains T: make t T=store
	@ninja -C build-asan --quiet
	@scripts/unit-tests build-asan '$(T)'

# One seed when it is named, a thousand otherwise.
SEEDS ?= $(if $(SEED),1,1000)
sim: ## run the simulator: SEEDS=1000, or SEED=7 TRACE=1 to see one; DEFECT=NAME for one with a mistake
	@scripts/setup test
	@$(MAKE) --no-print-directory --silent build/build.ninja
	@ninja -C build --quiet tests/sim/sim
	@build/tests/sim/sim --seeds $(SEEDS) $(if $(SEED),--seed $(SEED)) $(if $(TRACE),--trace) $(if $(DEFECT),--defect $(DEFECT))

# In the order of what fails first.
CHECKS := check-format check-layers check-headers check-banned check-gcc check-clang check-docs check-cppcheck check-asan \
	  check-tsan check-fuzz
.PHONY: $(CHECKS)
check: ## everything a change must pass before it is sent
	@scripts/setup check
	@for step in $(CHECKS); do \
		echo "== $$step"; \
		$(MAKE) --no-print-directory $$step || { echo "make check: $$step failed" >&2; exit 1; }; \
	done

check-format check-layers check-headers check-banned:
	@scripts/$@

check-gcc check-clang: check-%: build-%/build.ninja
	@ninja -C build-$* --quiet

check-asan: build-gcc-asan/build.ninja
	@ninja -C build-gcc-asan --quiet
	@meson test -C build-gcc-asan --no-rebuild --print-errorlogs

check-tsan: build-tsan/build.ninja
	@ninja -C build-tsan --quiet
	@meson test -C build-tsan --no-rebuild --print-errorlogs --timeout-multiplier 5 $(THREADED)

check-fuzz: fuzz

check-docs: build
	@for doc in api settings; do \
		build/leasehold $$doc-doc | diff -u docs/$$doc.md - || \
			{ echo "docs/$$doc.md is stale; right is: make docs" >&2; exit 1; }; \
	done

check-cppcheck:
	@cppcheck --quiet --error-exitcode=1 --enable=warning,performance,portability --inline-suppr --std=c11 \
		--suppress=missingIncludeSystem --suppress=uninitvar --suppress=uninitStructMember -D_GNU_SOURCE -DLEASEHOLD_VERSION='""' -Isrc -j 2 src

fmt: ## let clang-format decide about white space
	@scripts/check-format --fix

bench: ## measure it against this machine's nginx; ARGS=--quick for a first look
	@scripts/setup bench
	bench/run $(ARGS)

fuzz: build-fuzz/build.ninja ## run every fuzz target for SECONDS=10
	@ninja -C build-fuzz --quiet
	@scripts/fuzz build-fuzz '$(SECONDS)'

# Files are made beside their place and moved, so that a failure leaves no half of one.
docs: build ## make docs/api.md and docs/settings.md anew from the tables of routes and settings
	@for doc in api settings; do \
		build/leasehold $$doc-doc > build/$$doc.md; \
		test -s build/$$doc.md || { echo "build/leasehold $$doc-doc printed nothing" >&2; exit 1; }; \
		mv build/$$doc.md docs/$$doc.md; \
	done

SHARE = $(DESTDIR)$(PREFIX)/share
install: build ## install below DESTDIR and PREFIX=/usr/local
	build/leasehold help --man > build/leasehold.1
	build/leasehold completion bash > build/leasehold.bash
	build/leasehold completion zsh > build/_leasehold
	sed 's|/usr/bin/leasehold|$(PREFIX)/bin/leasehold|' deploy/leasehold.service > build/leasehold.service
	install -D -m 755 build/leasehold $(DESTDIR)$(PREFIX)/bin/leasehold
	install -D -m 644 build/leasehold.1 $(SHARE)/man/man1/leasehold.1
	install -D -m 644 build/leasehold.bash $(SHARE)/bash-completion/completions/leasehold
	install -D -m 644 build/_leasehold $(SHARE)/zsh/site-functions/_leasehold
	install -D -m 644 deploy/leasehold.conf.example $(SHARE)/doc/leasehold/leasehold.conf.example
	install -D -m 644 build/leasehold.service $(DESTDIR)$(PREFIX)/lib/systemd/system/leasehold.service

setup: ## install what building needs
	@scripts/setup run

clean: ## remove everything that was built; data stays
	rm -rf build build-*

help: ## this list
	@sed -n 's/^\([a-z]*\):[^#]*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 18

# $(call configure,FOLDER,COMPILER,OPTIONS): meson is heard only when it fails.
configure = @echo "configuring $(1)"; log=$$(CC=$(2) meson setup $(1) $(3) 2>&1) || { echo "$$log" >&2; exit 1; }

build/build.ninja:
	$(call configure,build,$(CC))
build-asan/build.ninja:
	$(call configure,build-asan,$(CC),-Db_sanitize=address$(comma)undefined $(SANITIZED))
build-gcc/build.ninja:
	$(call configure,build-gcc,gcc,-Dwerror=true -Dtests=enabled)
build-clang/build.ninja:
	$(call configure,build-clang,clang,-Dwerror=true -Dtests=enabled)
build-gcc-asan/build.ninja:
	$(call configure,build-gcc-asan,gcc,-Dwerror=true -Db_sanitize=address$(comma)undefined $(SANITIZED))
build-tsan/build.ninja:
	$(call configure,build-tsan,gcc,-Dwerror=true -Db_sanitize=thread $(SANITIZED))
build-fuzz/build.ninja:
	$(call configure,build-fuzz,clang,-Dfuzz=true -Dtests=enabled)
