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
INSTANCES ?= sim
SPEED   ?= $(if $(filter local,$(INSTANCES)),1,360)
SECONDS ?= 10
TESTS   ?= auto
PYTHON  := /usr/bin/python3
comma   := ,

# An error that a sanitizer finds ends the program that has it.
SANITIZED := -Db_lundef=false -Dc_args=-fno-sanitize-recover=all -Dtests=enabled
export ASAN_OPTIONS  := detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1
export UBSAN_OPTIONS := halt_on_error=1:print_stacktrace=1
export TSAN_OPTIONS  := halt_on_error=1:second_deadlock_stack=1

# The unit tests that use threads.
THREADED := $(foreach t,alarm aws aws_identity broker cloud csp disk fetch http_api http_server jobs kernel notify policy_document pump saga schedule store webhook,$(if $(wildcard tests/unit/test_$(t).c),$(t)))

.PHONY: all build run test t sim check fmt bench fuzz fuzz-api coverage soak install docs setup clean help
all: build

build: build/build.ninja check-layers ## build the program: build/leasehold
	@ninja -C build --quiet

# build/ may have been configured without the tests: by `make run`, or before cmocka was there.
.PHONY: build-tests
build-tests: build/build.ninja
	@ninja -C build -t query tests/sim/sim >/dev/null 2>&1 || { $(call heard_on_failure,meson setup --reconfigure build -Dtests=enabled) }
	@ninja -C build --quiet

# Real sites take real time. Their folder is beside the store's, which is closed to the tenants' users.
ROUTER ?= 127.0.0.1:8081
ifeq ($(INSTANCES),local)
RUN_INSTANCES = LEASEHOLD_INSTANCE_DRIVER=local LEASEHOLD_INSTANCE_FOLDER=$(abspath $(DATA))-instances LEASEHOLD_INSTANCE_ROUTER=$(ROUTER)
endif
# Only warnings are logged, so that what it says at the start stays on the screen: make run LOG_LEVEL=INFO shows the rest.
run: ## install what is missing, build and start it for trying out, on LISTEN=127.0.0.1:8080 with DATA=data, SPEED=360 times as fast; INSTANCES=local for real WordPress sites
	@scripts/setup $(if $(filter local,$(INSTANCES)),instances,run)
	@test -e build/leasehold || echo "building; this takes a minute the first time"
	@$(MAKE) --no-print-directory build TESTS=disabled
	@LEASEHOLD_TIME_SCALE=$${LEASEHOLD_TIME_SCALE:-$(SPEED)} $(RUN_INSTANCES) LOG_LEVEL=$${LOG_LEVEL:-WARNING} \
		exec build/leasehold serve --dev --listen $(LISTEN) --data $(DATA)

test: ## install what is missing, run the quick checks and all tests
	@scripts/setup test
	@$(MAKE) --no-print-directory $(QUICK_CHECKS)
	@$(MAKE) --no-print-directory unit
	@$(MAKE) --no-print-directory build-tests
	meson test -C build --no-rebuild --print-errorlogs --suite sim
	LEASEHOLD_BIN=$(CURDIR)/build/leasehold PYTHON=$(PYTHON) scripts/server-tests

.PHONY: unit
unit: build-asan/build.ninja
	ninja -C build-asan --quiet
	meson test -C build-asan --no-rebuild --print-errorlogs

t: build-asan/build.ninja ## run the unit tests whose name contains T: make t T=store
	@ninja -C build-asan --quiet
	@scripts/unit-tests build-asan '$(T)'

# One seed when it is named, a thousand otherwise.
SEEDS ?= $(if $(SEED),1,1000)
sim: ## run the simulator: SEEDS=1000, or SEED=7 TRACE=1 to see one; DEFECT=NAME for one with a mistake; NODES=24; DAYS=120 for long worlds
	@scripts/setup test
	@$(MAKE) --no-print-directory build-tests
	@build/tests/sim/sim --seeds $(SEEDS) $(if $(SEED),--seed $(SEED)) $(if $(TRACE),--trace) $(if $(NODES),--nodes $(NODES)) $(if $(DAYS),--days $(DAYS)) $(if $(DEFECT),--defect $(DEFECT))

# In the order of what fails first.
QUICK_CHECKS := check-format check-layers check-headers check-banned
CHECKS := $(QUICK_CHECKS) check-gcc check-clang check-docs check-cppcheck check-asan \
	  check-tsan check-tsan-server check-aws check-ddb check-fuzz check-fuzz-api check-coverage
.PHONY: $(CHECKS)
check: ## everything a change must pass before it is sent
	@scripts/setup check
	@for step in $(CHECKS); do \
		echo "== $$step"; \
		$(MAKE) --no-print-directory $$step || { echo "make check: $$step failed" >&2; exit 1; }; \
	done

$(QUICK_CHECKS):
	@scripts/$@

check-gcc check-clang: check-%: build-%/build.ninja
	@ninja -C build-$* --quiet

check-asan: build-gcc-asan/build.ninja
	@ninja -C build-gcc-asan --quiet
	@meson test -C build-gcc-asan --no-rebuild --print-errorlogs

check-tsan: build-tsan/build.ninja
	@ninja -C build-tsan --quiet
	@meson test -C build-tsan --no-rebuild --print-errorlogs --timeout-multiplier 5 $(THREADED)

# The server itself, under the tests of its API; without those that mostly wait, or try one thread many times.
UNHURRIED := account_moved cli_terminal malformed nuke time_scale upstream_ui
check-tsan-server: build-tsan/build.ninja
	@ninja -C build-tsan --quiet
	@LEASEHOLD_BIN=$(CURDIR)/build-tsan/leasehold $(PYTHON) -m pytest tests/api \
		$(foreach t,$(UNHURRIED),--ignore=tests/api/test_$(t).py)

# All of AWS in one process, with what takes minutes: each call of a lease, a hold and an instance lost, and the server killed at each; the suites of holds
# and of instances there; and at the end whether every permission of the policies was used.
check-aws: build-tests
	@LEASEHOLD_BIN=$(CURDIR)/build/leasehold $(PYTHON) -m pytest tests/aws

# Leases on three nodes: what make test leaves out of the tests on DynamoDB.
check-ddb: build-tests
	@LEASEHOLD_BIN=$(CURDIR)/build/leasehold $(PYTHON) -m pytest tests/ddb/test_lease_nodes.py

check-coverage: coverage

check-fuzz: fuzz

check-fuzz-api: fuzz-api

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

fuzz-api: build-asan/build.ninja ## fuzz the whole HTTP API of a sanitized server for SECONDS=10, from SEED=1 on; SEED=7 ROUNDS=1 repeats one
	@ninja -C build-asan --quiet leasehold
	@$(PYTHON) tests/fuzz/fuzz_api.py --seconds $(SECONDS) --seed $(or $(SEED),1) $(if $(ROUNDS),--rounds $(ROUNDS)) $(ARGS)

coverage: build-coverage/build.ninja ## show which lines and branches the unit tests and the simulator reach, by room; ALL=1 with the suites that run servers
	@scripts/setup check
	@ninja -C build-coverage --quiet
	@PYTHON=$(PYTHON) scripts/coverage build-coverage $(if $(ALL),all)

HOURS ?= 1
soak: build-fuzz/build.ninja build-asan/build.ninja build-tsan/build.ninja ## run what takes hours for HOURS=1: simulator, kills, power failures, fuzzing; writes docs/endurance.md
	@scripts/setup check
	@$(MAKE) --no-print-directory build-tests
	@ninja -C build-asan --quiet leasehold
	@ninja -C build-tsan --quiet
	@ninja -C build-fuzz --quiet
	@scripts/soak $(HOURS)

# Files are made beside their place and moved, so that a failure leaves no half of one.
docs: build ## make docs/api.md and docs/settings.md anew from the tables of routes and settings
	@for doc in api settings; do \
		build/leasehold $$doc-doc > build/$$doc.md; \
		test -s build/$$doc.md || { echo "build/leasehold $$doc-doc printed nothing" >&2; exit 1; }; \
		mv build/$$doc.md docs/$$doc.md; \
	done

install: build ## install below DESTDIR and PREFIX=/usr/local
	@$(call heard_on_failure,meson configure build --prefix=$(PREFIX)) ninja -C build --quiet
	meson install -C build --no-rebuild $(if $(DESTDIR),--destdir $(abspath $(DESTDIR)))

.PHONY: deb image site-image portable lambda-zip check-deploy
deb: ## build the Debian package of the last commit, into build-deb
	@scripts/setup deploy
	@scripts/make-deb

image: ## build the container image: ARCH=amd64 or arm64, into build-image; as root
	@scripts/setup deploy
	@scripts/make-image $(ARCH)

site-image: ## build the image of tenants' tasks on AWS, into build-site-image; as root, with the network
	@scripts/setup deploy
	@scripts/make-site-image

lambda-zip: portable
portable: ## build one file, and the function for AWS Lambda, that run on any Linux with glibc 2.34: ARCH=amd64 or arm64, into build-portable
	@scripts/setup deploy
	@scripts/make-portable $(ARCH)

check-deploy: ## try the package and the image as production runs them, and the stacks for AWS; SLOW=1 for all cases (deploy/README.md)
	@scripts/setup deploy
	@$(MAKE) --no-print-directory build
	LEASEHOLD_BIN=$(CURDIR)/build/leasehold LEASEHOLD_DEPLOY=1 $(if $(SLOW),LEASEHOLD_SLOW=1) $(PYTHON) -m pytest -rs tests/deploy tests/ddb/test_updates.py

setup: ## install what building needs
	@scripts/setup run

clean: ## remove everything that was built; data stays
	rm -rf build build-* deploy/cdk/build

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 18

# meson is heard only when it fails.
heard_on_failure = log=$$($(1) 2>&1) || { echo "$$log" >&2; exit 1; };
# $(call configure,FOLDER,COMPILER,OPTIONS)
configure = @echo "configuring $(1)"; $(call heard_on_failure,CC=$(2) meson setup $(1) $(3))

build/build.ninja:
	$(call configure,build,$(CC),-Dtests=$(TESTS))
build-asan/build.ninja:
	$(call configure,build-asan,$(CC),-Db_sanitize=address$(comma)undefined $(SANITIZED))
build-gcc/build.ninja:
	$(call configure,build-gcc,gcc,-Dwerror=true -Dtests=enabled)
build-clang/build.ninja:
	$(call configure,build-clang,clang,-Dwerror=true -Dtests=enabled)
build-gcc-asan/build.ninja:
	$(call configure,build-gcc-asan,gcc,-Dwerror=true -Db_sanitize=address$(comma)undefined $(SANITIZED))
build-coverage/build.ninja:
	$(call configure,build-coverage,gcc,-Db_coverage=true -Dtests=enabled)
build-tsan/build.ninja:
	$(call configure,build-tsan,gcc,-Dwerror=true -Db_sanitize=thread $(SANITIZED))
build-fuzz/build.ninja:
	$(call configure,build-fuzz,clang,-Dfuzz=true -Dtests=enabled)
