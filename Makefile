# edihub. The two commands to know are `make run` and `make test`.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO        ?= go
GOFLAGS   ?= -mod=readonly
FUZZTIME  ?= 30s
BENCHTIME ?= 2s
VERSION   := $(shell git describe --always --dirty 2>/dev/null || echo unknown)
export GOFLAGS

.PHONY: help build run test unit rules lint compose vuln bench fuzz mutations chaos measure generate docs loadtest clean

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## the static bin/edihub
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/edihub ./cmd/edihub

run: build ## a hub with two demo partners that post real AS2 to it; nothing else to install
	./bin/edihub demo

test: ## everything CI checks
	./scripts/need cc openssl
	$(GO) mod verify
	./scripts/tidy-check
	./scripts/generate-check
	$(GO) vet ./...
	$(MAKE) --no-print-directory build
	./scripts/test
	$(MAKE) --no-print-directory rules

unit: ## the tests of one package: make unit PKG=./internal/pipeline
	$(GO) test -race -shuffle=on -timeout 10m $(PKG)

rules: ## proof that each rule of the runner has a test that fails without it
	$(GO) run ./internal/tools/ruleproof

lint: ## gofmt, vet and, where it can be installed, golangci-lint
	./scripts/lint

compose: ## docker-compose.yml is accepted by docker-compose
	./scripts/need docker-compose
	docker-compose -f docker-compose.yml config --quiet

vuln: ## govulncheck, where its database can be reached
	./scripts/vuln

bench: ## benchmarks, one table, ratios against a reference of the same run
	$(GO) run ./internal/tools/bench -benchtime $(BENCHTIME) ./...

fuzz: ## every fuzzer for FUZZTIME each
	./scripts/fuzz $(FUZZTIME)

mutations: ## 20,000 changed invoices: no panic, one verdict
	EDIHUB_MUTATIONS=20000 $(GO) test -count=1 -timeout 30m -run TestMutations -v ./internal/peppol

chaos: ## the kill matrix, and many rounds of kills at random: EDIHUB_CHAOS_ROUNDS, EDIHUB_CHAOS_SEED
	EDIHUB_CHAOS_ROUNDS=$${EDIHUB_CHAOS_ROUNDS:-10} $(GO) test -v -race -count=1 -timeout 30m -run '^TestKill' ./internal/app

loadtest: build ## the load test of the README
	./bin/edihub loadtest --messages 20000 --partners 20 --senders 16 --security none --ordering partner --duplicates 5 --poison 1

measure: build ## what is promised of the whole hub, a table each; ends by itself
	$(GO) run ./internal/tools/measure -binary bin/edihub

generate: ## code and docs that are generated from code
	$(GO) generate ./...

docs: generate ## the same

clean:
	rm -rf bin
