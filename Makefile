# Everything a person types. "make" alone lists it.

GO      ?= go
BIN     := bin/atelier
TOOL    := $(GO) tool -modfile=build/tools/go.mod
# The race detector slows code down three to twenty times. It does not watch SQLite (C translated to Go, behind its own
# locks) and the YAML parser. Packages that use sync or atomic cannot be left out: the linker may keep their copies of
# generic functions, which then hide from the detector what they synchronize.
UNWATCHED := modernc.org go.yaml.in
RACE    := $(shell command -v gcc >/dev/null 2>&1 && echo "-race $(patsubst %,'-gcflags=%/...=-race=false',$(UNWATCHED))")
# Tests that drive the program from outside, and tests of pixels, sound and models: make test runs them without the race
# detector, make race with it.
PLAIN   := . ./api/... ./build/... ./cmd/... ./test/... ./tools/... ./internal/engine/builtin/...
GOTEST  := $(GO) test -vet=off -timeout 30m

.DEFAULT_GOAL := help
.PHONY: help build run demo programs test race check generate swagger bench chaos sdcpp clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/atelier
	$(GO) build -buildvcs=auto -o $(BIN) ./cmd/atelier

run: programs build ## serve on http://localhost:8080 with everything under ./data
	$(BIN) serve

demo: programs build ## run three tools on a service that is there for that only
	@build/demo

programs: ## install what the tools for speech, music and video need, where that can be done
	@build/programs

test: ## all tests, on SQLite and on PostgreSQL
	@test -n "$(RACE)" || echo "without the race detector: it needs gcc (apt-get install gcc)"
	@plain=$$($(GO) list $(PLAIN)) && watched=$$($(GO) list ./... | grep -vxF "$$plain") && \
		$(GO) run ./test/report $(GOTEST) -p 1 $$plain -- $(GOTEST) $(RACE) $$watched

race: ## all tests with the race detector, those of pixels, sound and models too
	$(GO) run ./test/report $(GOTEST) -timeout 90m $(RACE) ./test/... ./...

check: ## format, vet, staticcheck, lint, known vulnerabilities, and whether generated and fetched files are fresh
	@test -z "$$(gofmt -l api build client cmd internal test tools)" || { echo "not formatted:"; gofmt -l api build client cmd internal test tools; exit 1; }
	$(GO) vet ./...
	$(GO) vet -tags failpoint ./internal/base/failpoint
	$(TOOL) staticcheck ./...
	$(GO) tool -modfile=build/lint/go.mod golangci-lint run ./...
	@GO="$(GO)" build/vulnerabilities
	@build/fresh
	@build/swagger --check

generate: ## write generated files anew
	$(GO) generate ./...

swagger: ## fetch the Swagger UI that internal/web/reference/swagger-ui/VERSION names
	@build/swagger

bench: ## measure against a bare handler, the bare SQL and the processor's peak, in one run
	$(GO) run ./test/bench

chaos: ## kill the program 200 times on either database, under load
	$(GO) test -count=1 -timeout 60m -v -run TestChaos ./test/chaos -args -kills 200

sdcpp: ## test the adapters with the server of stable-diffusion.cpp, which is built first (needs cmake and g++)
	ATELIER_TEST_SDCPP=1 $(GO) test -count=1 -timeout 90m -v -run TestStableDiffusionCpp ./internal/engine/a1111

clean: ## remove what was built
	rm -rf bin
