# make run          builds the server and runs it on 127.0.0.1:6380, with metrics on 127.0.0.1:9380
# make test         everything: installs what the tests require, then format, vet, lint, race detector, all tests, fuzzing
# make check        format, vet, lint and the short tests, for use while editing
# make fuzz         runs the fuzz targets for FUZZTIME seconds in all (default 3600)
# make soak         attacks the server in all ways at once for SOAKTIME seconds (default 600), with the race detector, and
#                   then kills it a hundred times under load, and the Redis servers behind four of it
# make profile      updates the profile for the compiler, cmd/cellserver/default.pgo
# make bench        all measurements and comparisons, in about ten minutes; updates bench/README.md
# make clients      tests real Redis clients in six languages; writes docs/CLIENTS.md
# make screenshots  screenshots of the live page under load, for docs/; takes two minutes and chromium
# make pictures     draws the pictures of docs/LIMITERS.md again
# make bench-quick  compares CPU time per request with redis-server's SET, in under a minute; fails if it is too high

GO       ?= go
LINT     := $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
FUZZTIME ?= 3600
SOAKTIME ?= 600

# Or each process of the race detector that ends waits for a second; the tests start hundreds.
export GORACE ?= atexit_sleep_ms=50

.PHONY: run build test check fuzz soak profile clients screenshots pictures bench bench-quick deps format vet vet-others lint

run: build
	./cellserver

build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o cellserver ./cmd/cellserver

test: deps format vet vet-others lint
	$(GO) test -pgo=off -count=1 -timeout 10m ./...
	CGO_ENABLED=1 $(GO) test -race -pgo=off -count=1 -timeout 15m ./...
	cd bench && CGO_ENABLED=1 $(GO) test -race -count=1 ./...
	cd clients && CGO_ENABLED=1 $(GO) test -race -count=1 ./...
	cd browser && CGO_ENABLED=1 $(GO) test -race -count=1 -parallel 4 ./...
	cd soak && CGO_ENABLED=1 $(GO) test -race -short -count=1 ./...
	cd deploy/test && $(GO) test -count=1 ./...
	scripts/fuzz.sh 60
	$(MAKE) clients CLIENTS_FLAGS=--check

check: format vet lint
	$(GO) test -pgo=off -short ./...
	cd bench && $(GO) test -short ./...
	cd clients && $(GO) test -short ./...
	cd browser && $(GO) test -short ./...
	cd deploy/test && $(GO) test -short ./...

fuzz:
	scripts/fuzz.sh $(FUZZTIME)

soak:
	cd soak && $(GO) run . run --time $(SOAKTIME)s
	cd soak && $(GO) run . kills
	cd soak && $(GO) run . remote

profile:
	cd cmd/cellserver && CGO_ENABLED=0 $(GO) test -run '^$$' -bench Serve -benchtime 5s -cpuprofile default.pgo -o /dev/null .

# Clients whose packages cannot be installed are listed and skipped.
clients:
	@scripts/deps.sh || true
	cd clients && $(GO) build -o clients . && ./clients $(CLIENTS_FLAGS)

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
	$(GO) vet -pgo=off ./...
	cd bench && $(GO) vet ./...
	cd clients && $(GO) vet ./...
	cd browser && $(GO) vet ./...
	cd soak && $(GO) vet ./...
	cd deploy/test && $(GO) vet ./...

# Checks that go.mod is tidy, and builds for other systems and for 32 bits.
vet-others:
	$(GO) mod tidy -diff
	cd bench && $(GO) mod tidy -diff
	cd clients && $(GO) mod tidy -diff
	cd browser && $(GO) mod tidy -diff
	cd soak && $(GO) mod tidy -diff
	cd deploy/test && $(GO) mod tidy -diff
	GOOS=darwin $(GO) vet -pgo=off ./cmd/... ./internal/...
	GOARCH=386 $(GO) build -pgo=off ./cmd/... ./internal/...
	GOOS=windows $(GO) vet -pgo=off ./cmd/... ./internal/...

lint:
	$(LINT) run ./...
	cd bench && $(LINT) run ./...
	cd clients && $(LINT) run ./...
	cd browser && $(LINT) run ./...
	cd soak && $(LINT) run ./...
	cd deploy/test && $(LINT) run ./...
	shellcheck .ci/run scripts/*.sh
