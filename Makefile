# make run          builds the server and runs it on 127.0.0.1:6380, with HTTP on 127.0.0.1:6381 and metrics on 127.0.0.1:9380
# make test         format, vet, the short tests, and the race detector where goroutines share. Needs Go, and for the race
#                   detector a C compiler; installs nothing, and lists at the end what was skipped for want of a program
# make verify       everything, as CI does, and skips nothing: installs what the tests require, then make test, lint, all tests
#                   in full with the race detector, real clients, browsers, packages, attacks, fuzzing
# make fuzz         runs the fuzz targets for FUZZTIME seconds in all (default 3600)
# make flaky        looks for tests that fail by luck: runs the short tests of everything five times, and those that wait most
#                   twenty times, beside busy loops; takes hours (scripts/flaky.sh says how to do less)
# make soak         attacks the server in all ways at once for SOAKTIME seconds (default 600), with the race detector, and
#                   then kills it a hundred times under load, and the Redis servers behind four of it; and has replicas take
#                   over from leaders, by all faults
# make profile      updates the profile for the compiler, cmd/cellserver/default.pgo
# make bench        all measurements and comparisons, in about half an hour; updates bench/README.md
# make clients      tests real Redis clients in six languages, libraries that limit over Redis, and the adapters; writes
#                   docs/CLIENTS.md and docs/LIBRARIES.md
# make screenshots  screenshots of the live page under load, for docs/; takes seven minutes and chromium
# make pictures     draws the pictures of docs/LIMITERS.md again
# make release      builds what a release consists of in dist/ and publishes nothing: archives for four systems, packages for
#                   Debian and Fedora, bills of materials, checksums, a Homebrew formula and a container image
# make bench-quick  compares CPU time per request with redis-server's SET, in under a minute; fails if it is too high

GO       ?= go
LINT     := $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
ACTIONLINT := $(GO) run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
FUZZTIME ?= 3600
SOAKTIME ?= 600

# Or each process of the race detector that ends waits for a second; the tests start hundreds.
export GORACE ?= atexit_sleep_ms=50

# Packages whose goroutines share, for make test's race detector; make verify has it on all.
RACED ?= ./internal/decide/... ./internal/edge/door ./internal/edge/server/... ./internal/keep/changes \
	./internal/keep/persist ./internal/keep/remote/engine ./internal/keep/replication ./internal/redis/execute \
	./internal/redis/session

# What checks and tests build has one form, so that the cache serves all of them, the servers that tests build, and other
# clones: without the profile, for which everything is compiled again, without this directory's name, and, as what is
# released, without cgo. vet and lint come first, so the tests are not vetted again. Most tests wait more than they
# compute, so more of them run at once than there are processors. The timeout is for a test that hangs, on a slow machine.
CHECKS := test verify short raced vet vet-others lint fuzz flaky test-soak test-deploy test-release test-browser test-bench test-clients test-xds
$(CHECKS): export GOFLAGS := $(GOFLAGS) -pgo=off -trimpath
$(CHECKS): export CGO_ENABLED := 0
TESTS := $(GO) test -vet=off -count=1 -p 4 -parallel 4 -timeout 60m
RACE  := CGO_ENABLED=1 $(TESTS) -race

.PHONY: $(CHECKS) run build release-tools release soak profile clients screenshots pictures bench bench-quick deps format

run: export CELLSERVER_HTTP_ADDR ?= 127.0.0.1:6381
run: build
	./cellserver

build:
	CGO_ENABLED=0 $(GO) build -tags grpcnotrace -trimpath -ldflags '-s -w' -o cellserver ./cmd/cellserver

# What this builds for itself is built as the tests of lab/release build it.
TOOLS := CGO_ENABLED=0 $(GO) build -pgo=off -trimpath
release-tools:
	cd lab/release && $(TOOLS) -o bin/ .
	cd lab/release/goreleaser && $(TOOLS) -o ../bin/ tool

release: release-tools
	PWD=$(CURDIR) GORELEASER_CURRENT_TAG=v$$(lab/release/bin/release version) lab/release/bin/goreleaser release --snapshot --clean
	lab/release/bin/release image dist

# A test that is skipped for want of a program, or of a right, writes its name to this file; with TEST_VERIFY it fails.
test raced: export TEST_SKIPPED := $(CURDIR)/skipped.txt
test: format vet
	@rm -f $(TEST_SKIPPED)
	$(MAKE) short raced
	@test ! -e $(TEST_SKIPPED) || { sort -u $(TEST_SKIPPED) | paste -s -d , - | sed 's/,/, /g; s/^/skipped for want of: /'; rm $(TEST_SKIPPED); }

short:
	$(TESTS) -short ./...
	cd adapters/go && $(TESTS) -short ./...
	cd adapters/go/cellgrpc && $(TESTS) -short ./...

raced:
	$(if $(RACED),$(if $(shell command -v $$($(GO) env CC)),$(RACE) -short $(RACED),@echo 'a C compiler (the race detector)' >>$(TEST_SKIPPED)))

# Each test runs once in full: docs/check, which runs the program as it is built for users, without the race detector, all
# others with it. The short run without it, in which UNRACED includes what is too slow under it, checks allocations.
verify: export TEST_VERIFY := 1
verify: export UNRACED := 1
verify: deps
	$(MAKE) test vet-others lint RACED=
	$(TESTS) ./docs/check
	$(RACE) ./cmd/... ./internal/... ./e2e/...
	$(MAKE) -j 2 test-release test-soak test-deploy test-browser test-bench test-clients test-xds
	scripts/fuzz.sh 40
	$(MAKE) clients CLIENTS_FLAGS=--check

# These wait for browsers, clusters and alerts: two at once. The release comes first, as it builds GoReleaser.
test-soak:
	cd lab && $(RACE) -short ./soak/...
test-deploy test-release: test-%:
	cd lab && $(TESTS) ./$*/...
test-browser test-clients test-xds: test-%:
	cd lab && $(RACE) ./$*/...
test-bench:
	cd bench && $(RACE) ./...

fuzz:
	scripts/fuzz.sh $(FUZZTIME)

flaky:
	scripts/flaky.sh

soak:
	cd lab/soak && $(GO) run . run --time $(SOAKTIME)s
	cd lab/soak && $(GO) run . kills
	cd lab/soak && $(GO) run . remote
	cd lab/soak && $(GO) run . failover
	cd lab/soak && $(GO) run . changes
	cd lab/soak && $(GO) run . changekills
	cd lab/soak && $(GO) run . waits
	cd lab/soak && $(GO) run . replica
	cd lab/soak && $(GO) run . values

profile:
	CGO_ENABLED=0 $(GO) test -trimpath -run '^$$' -bench Serve -benchtime 5s -cpuprofile cmd/cellserver/default.pgo -o /dev/null ./e2e/wire

# Clients whose packages cannot be installed are listed and skipped.
clients:
	@scripts/deps.sh || true
	cd lab/clients && $(GO) build -o clients . && ./clients $(CLIENTS_FLAGS) && $(GO) run ./libraries $(CLIENTS_FLAGS)
	cd adapters/go && $(TESTS) ./...
	cd adapters/go/cellgrpc && $(TESTS) ./...
	cd adapters/python && /usr/bin/python3 -m unittest discover tests

screenshots:
	cd lab/browser && $(GO) run . -o ../../docs

pictures:
	cd bench && $(GO) run . pictures

bench:
	cd bench && $(GO) build -o bench . && ./bench run -o results/latest.json --readme README.md

bench-quick:
	cd bench && $(GO) build -o bench . && ./bench run --quick

deps:
	scripts/deps.sh

format:
	@files=$$("$$($(GO) env GOROOT)/bin/gofmt" -l .); test -z "$$files" || { echo "not formatted (run gofmt -w):" $$files; exit 1; }

vet:
	$(GO) vet ./...
	cd adapters/go && $(GO) vet ./...
	cd adapters/go/cellgrpc && $(GO) vet ./...

# Checks that go.mod is tidy, and builds for other systems and for 32 bits, which nobody runs: without optimizing.
vet-others: HASTY := -gcflags='all=-N -l'
vet-others:
	for module in . bench lab lab/release/goreleaser adapters/go adapters/go/cellgrpc; do (cd $$module && $(GO) mod tidy -diff) || exit; done
	GOOS=darwin $(GO) vet $(HASTY) ./cmd/... ./internal/... ./e2e/...
	GOARCH=386 $(GO) build $(HASTY) ./cmd/... ./internal/...
	GOOS=windows $(GO) vet $(HASTY) ./cmd/... ./internal/... ./e2e/...
	GOOS=freebsd $(GO) build $(HASTY) ./cmd/... ./internal/...

# golangci-lint vets, too.
lint:
	for module in . bench lab adapters/go adapters/go/cellgrpc; do (cd $$module && $(LINT) run ./...) || exit; done
	shellcheck .ci/run scripts/*.sh
	$(ACTIONLINT)
