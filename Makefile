# make run          builds the server and runs it on 127.0.0.1:6380, with HTTP on 127.0.0.1:6381 and metrics on 127.0.0.1:9380
# make test         everything: installs what the tests require, then format, vet, lint, race detector, all tests, fuzzing
# make check        format, vet, lint and the short tests, for use while editing
# make fuzz         runs the fuzz targets for FUZZTIME seconds in all (default 3600)
# make flaky        looks for tests that fail by luck: runs the short tests of everything five times, and those that wait most
#                   twenty times, beside busy loops; takes hours (scripts/flaky.sh says how to do less)
# make soak         attacks the server in all ways at once for SOAKTIME seconds (default 600), with the race detector, and
#                   then kills it a hundred times under load, and the Redis servers behind four of it; and has replicas take
#                   over from leaders, by all faults
# make profile      updates the profile for the compiler, cmd/cellserver/default.pgo
# make bench        all measurements and comparisons, in about 25 minutes; updates bench/README.md
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

# What checks and tests build has one form, so that the cache serves all of them, the servers that tests build, and other
# clones: without the profile, for which everything is compiled again, without this directory's name, and, as what is
# released, without cgo. vet and lint come first, so the tests are not vetted again. Most tests wait more than they
# compute, so more of them run at once than there are processors. The timeout is for a test that hangs, on a slow machine.
CHECKS := test check vet vet-others lint fuzz flaky test-soak test-deploy test-release test-browser test-bench test-clients
$(CHECKS): export GOFLAGS := $(GOFLAGS) -pgo=off -trimpath
$(CHECKS): export CGO_ENABLED := 0
TESTS := $(GO) test -vet=off -count=1 -p 4 -parallel 4 -timeout 60m
RACE  := CGO_ENABLED=1 $(TESTS) -race

.PHONY: $(CHECKS) run build release-tools release soak profile clients screenshots pictures bench bench-quick deps format

run: export CELLSERVER_HTTP_ADDR ?= 127.0.0.1:6381
run: build
	./cellserver

build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o cellserver ./cmd/cellserver

# What this builds for itself is built as the tests of release/ build it.
TOOLS := CGO_ENABLED=0 $(GO) build -pgo=off -trimpath
release-tools:
	cd release && $(TOOLS) -o bin/ .
	cd release/goreleaser && $(TOOLS) -o ../bin/ tool

release: release-tools
	PWD=$(CURDIR) GORELEASER_CURRENT_TAG=v$$(release/bin/release version) release/bin/goreleaser release --snapshot --clean
	release/bin/release image dist

# Each test runs once in full: the root's, which run the program as it is built for users, without the race detector, all
# others with it. A short run without it checks allocations, and what is too slow under it.
test: deps format vet vet-others lint
	$(TESTS) .
	UNRACED=1 $(TESTS) -short ./internal/... ./e2e/...
	$(RACE) ./cmd/... ./internal/... ./e2e/...
	$(MAKE) -j 2 test-release test-soak test-deploy test-browser test-bench test-clients
	scripts/fuzz.sh 40
	$(MAKE) clients CLIENTS_FLAGS=--check

# The other modules wait for browsers, clusters and alerts: two at once. The release comes first, as it builds GoReleaser.
test-soak:
	cd soak && $(RACE) -short ./...
test-deploy:
	cd deploy/test && $(TESTS) ./...
test-release:
	cd release && $(TESTS) ./...
test-browser:
	cd browser && $(RACE) -parallel 4 ./...
test-bench test-clients: test-%:
	cd $* && $(RACE) ./...

check: format vet lint
	$(GO) test -short ./...
	cd bench && $(GO) test -short ./...
	cd clients && $(GO) test -short ./...
	cd browser && $(GO) test -short -parallel 8 ./...
	cd deploy/test && $(GO) test -short ./...

fuzz:
	scripts/fuzz.sh $(FUZZTIME)

flaky:
	scripts/flaky.sh

soak:
	cd soak && $(GO) run . run --time $(SOAKTIME)s
	cd soak && $(GO) run . kills
	cd soak && $(GO) run . remote
	cd soak && $(GO) run . failover
	cd soak && $(GO) run . changes
	cd soak && $(GO) run . changekills
	cd soak && $(GO) run . waits
	cd soak && $(GO) run . replica
	cd soak && $(GO) run . values

profile:
	CGO_ENABLED=0 $(GO) test -trimpath -run '^$$' -bench Serve -benchtime 5s -cpuprofile cmd/cellserver/default.pgo -o /dev/null ./e2e/wire

# Clients whose packages cannot be installed are listed and skipped.
clients:
	@scripts/deps.sh || true
	cd clients && $(GO) build -o clients . && ./clients $(CLIENTS_FLAGS) && $(GO) run ./libraries $(CLIENTS_FLAGS)
	cd adapters/go && $(TESTS) ./...
	cd adapters/go/cellgrpc && $(TESTS) ./...
	cd adapters/python && /usr/bin/python3 -m unittest discover tests

screenshots:
	cd browser && $(GO) run . -o ../docs

pictures:
	cd bench && $(GO) run . pictures

bench:
	cd bench && $(GO) build -o bench . && ./bench run -o results/latest.json --readme README.md

bench-quick:
	cd bench && $(GO) build -o bench . && ./bench run --quick

deps:
	scripts/deps.sh

format:
	@files=$$(gofmt -l .); test -z "$$files" || { echo "not formatted (run gofmt -w):" $$files; exit 1; }

vet:
	$(GO) vet ./...
	cd bench && $(GO) vet ./...
	cd clients && $(GO) vet ./...
	cd browser && $(GO) vet ./...
	cd soak && $(GO) vet ./...
	cd deploy/test && $(GO) vet ./...
	cd release && $(GO) vet ./...
	cd adapters/go && $(GO) vet ./...
	cd adapters/go/cellgrpc && $(GO) vet ./...

# Checks that go.mod is tidy, and builds for other systems and for 32 bits, which nobody runs: without optimizing.
vet-others: HASTY := -gcflags='all=-N -l'
vet-others:
	$(GO) mod tidy -diff
	cd bench && $(GO) mod tidy -diff
	cd clients && $(GO) mod tidy -diff
	cd browser && $(GO) mod tidy -diff
	cd soak && $(GO) mod tidy -diff
	cd deploy/test && $(GO) mod tidy -diff
	cd release && $(GO) mod tidy -diff
	cd adapters/go && $(GO) mod tidy -diff
	cd adapters/go/cellgrpc && $(GO) mod tidy -diff
	cd release/goreleaser && $(GO) mod tidy -diff
	GOOS=darwin $(GO) vet $(HASTY) ./cmd/... ./internal/... ./e2e/...
	GOARCH=386 $(GO) build $(HASTY) ./cmd/... ./internal/...
	GOOS=windows $(GO) vet $(HASTY) ./cmd/... ./internal/... ./e2e/...
	GOOS=freebsd $(GO) build $(HASTY) ./cmd/... ./internal/...

lint:
	$(LINT) run ./...
	cd bench && $(LINT) run ./...
	cd clients && $(LINT) run ./...
	cd browser && $(LINT) run ./...
	cd soak && $(LINT) run ./...
	cd deploy/test && $(LINT) run ./...
	cd release && $(LINT) run ./...
	cd adapters/go && $(LINT) run ./...
	cd adapters/go/cellgrpc && $(LINT) run ./...
	shellcheck .ci/run scripts/*.sh
	$(ACTIONLINT)
