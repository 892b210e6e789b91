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
# Packages with long tables: make test runs a sample of them with the race detector, and all of them without it.
SAMPLED := grep -rl --include=*_test.go atelier/internal/testkit/sample internal | xargs -n 1 dirname | sort -u | sed s,^,atelier/,
GOTEST  := $(GO) test -vet=off -timeout 60m

.DEFAULT_GOAL := help
.PHONY: help build run demo programs test race check generate swagger studio studio-dev studio-bench lighthouse pictures clients faults bench chaos fuzz nodes release chart sdcpp clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/atelier
	$(GO) build -buildvcs=auto -o $(BIN) ./cmd/atelier

run: programs build ## serve on http://localhost:8080 with everything under ./data
	$(BIN) serve

demo: programs build ## run three tools on a service that is there for that only
	@build/demo

programs: ## install what the tools for speech, music and video need, where that can be done
	@build/programs

test: export ATELIER_TEST_SCREENS ?= $(CURDIR)/bin/screens
test: ## all tests, on SQLite and on PostgreSQL, with pictures of every page in bin/screens
	@test -n "$(RACE)" || echo "without the race detector: it needs gcc (apt-get install gcc)"
	@build/studio --test
	@plain=$$($(GO) list $(PLAIN)) && watched=$$($(GO) list ./... atelier/client/... | grep -vxF "$$plain") && \
		$(GO) run ./test/report $(GOTEST) -p 1 $$plain $$($(SAMPLED)) -- $(GOTEST) -p 1 -short $(RACE) $$watched

race: ## all tests with the race detector, those of pixels, sound and models too
	$(GO) run ./test/report $(GOTEST) -timeout 90m $(RACE) ./test/... ./... atelier/client/...

check: ## format, vet, staticcheck, lint, known vulnerabilities, and whether generated and fetched files are fresh
	@test -z "$$(gofmt -l api build client cmd internal test tools)" || { echo "not formatted:"; gofmt -l api build client cmd internal test tools; exit 1; }
	$(GO) vet ./... atelier/client/...
	$(GO) vet -tags failpoint ./internal/base/failpoint
	@# The packages with files for Windows, without their tests, which need Unix. make release builds the whole for Windows.
	for package in internal/base/osfile internal/base/sqldb internal/engine/subprocess internal/file/quota internal/operate/backup; do \
		GOOS=windows CGO_ENABLED=0 $(GO) vet $$(GOOS=windows $(GO) list -f '{{range .GoFiles}}{{$$.Dir}}/{{.}} {{end}}' ./$$package) || exit 1; done
	$(TOOL) staticcheck ./... atelier/client/...
	$(GO) test -C build/lint .
	$(GO) build -C build/lint -o $(CURDIR)/bin/lint .
	bin/lint ./... atelier/client/...
	@GO="$(GO)" build/vulnerabilities
	@build/fresh
	@build/swagger --check
	@build/studio --check
	$(GO) run ./build/clients --check
	@build/clients/js --check

generate: ## write generated files anew, those of the client libraries and of the studio too (needs Node)
	$(GO) generate ./...
	$(GO) run ./build/clients
	@build/clients/js
	@build/studio --types

swagger: ## fetch the Swagger UI that internal/web/reference/swagger-ui/VERSION names
	@build/swagger

studio: ## build the studio in web/ into web/dist, which is committed (needs Node)
	@build/studio

studio-dev: ## serve the studio with hot reload, against a service that runs on http://localhost:8080
	@build/studio --dev

pictures: ## take the pictures of the documentation anew (needs Chromium)
	ATELIER_DOC_PICTURES=$(CURDIR)/docs/studio $(GO) test -count=1 -timeout 30m -run TestStudioPictures ./test/e2e

bench: ## measure against a bare handler, the bare SQL and the processor's peak, in one run
	$(GO) run ./test/bench

chaos: ## disturb the program for 10 minutes on each database under load (FOR=10m), kill it 200 times under flows (KILLS=200), and simulate two million steps
	$(GO) test -count=1 -timeout 60m -v -run 'TestChaos$$' ./test/chaos -args -for $(or $(FOR),10m)
	$(GO) test -count=1 -timeout 60m -v -run 'TestFlowChaos$$' ./test/chaos -args -flow-kills $(or $(KILLS),200)
	$(GO) test -count=1 -timeout 120m -v ./test/simulation -args -steps 20000 -rounds 100

fuzz: ## let every fuzz target try new inputs for 30 seconds each (SECONDS=N, TARGET=regular expression)
	@GO="$(GO)" build/fuzz $(or $(SECONDS),30) $(or $(TARGET),.)

nodes: ## restart nodes one after the other ten times under load, run the previous release beside the new one, and all end-to-end tests on four nodes
	$(GO) test -count=1 -timeout 2h -v ./test/nodes -args -rounds 10 -previous
	$(GO) test -count=1 -timeout 2h ./test/e2e -args -nodes

release: ## build the packages of this commit into bin/release: programs, .deb, container image, compose file, chart, SBOM, digests (KEY=… signs them, MAINTAINER="Name <address>")
	rm -rf bin/release
	$(GO) run ./build/release $(if $(KEY),-key $(KEY)) $(if $(MAINTAINER),-maintainer "$(MAINTAINER)")

chart: ## lint and render the Helm chart with Helm, and write the files that the tests compare
	cd build/chart && $(GO) run .

clients: ## write the generated parts of the client libraries only, and build the JavaScript one (needs Node)
	$(GO) generate ./build/clientgen
	$(GO) run ./build/clients
	@build/clients/js

faults: ## let each client library make 200 runs through broken connections and a service that is killed
	$(GO) test -count=1 -timeout 90m -v -run 'TestFaults$$' ./test/clients -args -creates 200

studio-bench: ## measure the studio in a browser: a library of 100,000 results, and a board of 1,000 pictures for ten minutes
	$(GO) test -count=1 -timeout 60m -v -run 'TestStudioLibraryScroll|TestStudioBoardPan' ./test/e2e -args -studio-items 100000 -studio-use 10m -studio-strict

lighthouse: ## let Lighthouse judge the studio's first page (npm install -g lighthouse), on a machine that does nothing else
	@LIGHTHOUSE=$${ATELIER_LIGHTHOUSE:-$$(command -v lighthouse)}; \
	if [ -z "$$LIGHTHOUSE" ]; then echo "skipped: Lighthouse is not installed (npm install -g lighthouse; version 12 for Node 20, 13 for Node 22.19 and newer)"; exit 0; fi; \
	ATELIER_LIGHTHOUSE=$$LIGHTHOUSE $(GO) test -count=1 -timeout 30m -v -run TestStudioLighthouse ./test/e2e

sdcpp: ## test the adapters with the server of stable-diffusion.cpp, which is built first (needs cmake and g++)
	ATELIER_TEST_SDCPP=1 $(GO) test -count=1 -timeout 90m -v -run TestStableDiffusionCpp ./internal/engine/a1111

clean: ## remove what was built
	rm -rf bin
