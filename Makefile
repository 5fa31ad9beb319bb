# The entry points for people and for continuous integration. `make` alone lists the targets
# that have a comment with two hashes.

SHELL         := bash
.SHELLFLAGS   := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS     += --no-builtin-rules --no-print-directory

# The pinned linter, test runner and mutation tester. Each version is installed into a folder of its own below
# bin/, built with the same Go as the project.
GOLANGCI_LINT_VERSION := v2.15.0
GOTESTSUM_VERSION     := v1.13.0
GREMLINS_VERSION      := v0.6.0
GOVULNCHECK_VERSION   := v1.9.0
GOLANGCI_LINT := bin/golangci-lint-$(GOLANGCI_LINT_VERSION)/golangci-lint
GOTESTSUM     := bin/gotestsum-$(GOTESTSUM_VERSION)/gotestsum
GREMLINS      := bin/gremlins-$(GREMLINS_VERSION)/gremlins

# The interpreter with the Debian packages of the Python tests.
export PYTHON ?= /usr/bin/python3

# The flags of an image (scripts/image.sh): its build, every other build and all checkouts of a machine share compiled packages.
export GOFLAGS    += -trimpath
export CGO_CFLAGS ?= -O2

# Outside a Git checkout, or in a checkout of another user, Go cannot read the commit and would
# refuse to build.
ifneq ($(shell git rev-parse --verify --quiet HEAD >/dev/null 2>&1 && echo yes),yes)
export GOFLAGS += -buildvcs=false
endif

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' Makefile

.PHONY: demo
demo: build runtime ## Restore the bundled photographs on all eight tasks and print the table
	@bin/ddiff run examples/demo.yaml

.PHONY: test
test: test-packages build runtime $(GOTESTSUM) ## Run every package without its long tests, a small cluster and the Python package
	@GOTESTSUM=$(GOTESTSUM) scripts/test.sh

.PHONY: test-all
test-all: all-packages build runtime $(GOLANGCI_LINT) $(GOTESTSUM) ## Run the rest: the linter, long tests, the race detector, browsers, PyTorch, clusters, the site
	@GOTESTSUM=$(GOTESTSUM) scripts/test.sh all

.PHONY: check
check: build-packages lint ## Run the linter and the rules of the repository
	@go test -vet=off -count=1 -short ./internal/repository

.PHONY: race
race: runtime ## Run the tests of the command line with the race detector in the program (an hour)
	@DDIFF_RACE=1 go test -count=1 -timeout 3h ./cmd/ddiff

.PHONY: picture
picture: demo ## Make the pictures of the documents: of the README from the demo, and those of gallery.py (10 minutes)
	@$(PYTHON) tools/gallery.py demo out/demo docs/demo.png
	@$(PYTHON) tools/gallery.py restore docs/images
	@$(PYTHON) tools/gallery.py methods docs/images

# An interpreter with torch and onnx, such as that of a virtual environment with their newest versions.
TORCH ?= $(PYTHON)

.PHONY: bench
bench: all-packages build runtime ## Time a light and a heavy task against the bare network and PyTorch (3 minutes, and the first time those of compilations; TORCH=DIR/bin/python BENCH="--device cpu")
	@PYTHONPATH=tools $(TORCH) -m ddiff_torch.compare --task super_resolution,phase_retrieval --items 4 --steps 10 --time 160 $(BENCH)

.PHONY: bench-full
bench-full: all-packages build runtime ## Time all tasks (an hour)
	@PYTHONPATH=tools $(TORCH) -m ddiff_torch.compare $(BENCH)

.PHONY: bench-host
bench-host: runtime ## Measure the CPU time of the host at 256×256 pixels: a normal deviate, the rest of a step, a picture beside its steps (3 minutes)
	@go test -vet=off -run '^$$' -bench '^BenchmarkHost' -timeout 20m ./internal/restore/noise ./internal/restore/solver ./cmd/ddiff | awk -f scripts/bench-host.awk

.PHONY: cluster-demo
cluster-demo: test-packages build runtime ## Run a cluster on this machine, kill one of each process, count (a minute)
	@go -C internal/testbed test -c -o $(CURDIR)/bin/testbed && bin/testbed demo

.PHONY: chaos
chaos: test-packages build runtime ## Inject faults into clusters and compare with an undisturbed run (SEEDS=10, CHAOS="--seed 7")
	@go -C internal/testbed test -c -o $(CURDIR)/bin/testbed && bin/testbed chaos $(if $(SEEDS),--seeds $(SEEDS)) $(CHAOS)

.PHONY: scale
scale: build ## Submit a million rows, and keep 500 simulated workers busy (SCALE="--rows 10000")
	@go -C internal/testbed test -c -o $(CURDIR)/bin/testbed && bin/testbed scale $(SCALE)

.PHONY: telemetry-test
telemetry-test: test-packages build runtime ## Read back what a real collector and a real Prometheus receive (10 minutes)
	@scripts/dashboards.sh
	@cd internal/telemetrytest && go test -count=1 .
	@go -C internal/testbed test -c -o $(CURDIR)/bin/testbed && bin/testbed telemetry $(TELEMETRY)

.PHONY: ablation
ablation: all-packages build runtime ## Compare DDiff with its variants, each tuned on other images (an hour or more; half an hour with ABLATION="--knobs 1 --steps 30")
	@$(PYTHON) tools/ablation.py $(ABLATION)

.PHONY: methods
methods: all-packages build runtime ## Compare all methods on all tasks, at equal cost and with the published steps (many hours; METHODS="--size 64 --images DIR")
	@$(PYTHON) tools/compare_methods.py $(METHODS)

.PHONY: quality
quality: all-packages build runtime ## Compare DDiff with DiffPIR, DDRM and DAPS on photographs that tuning did not use (an hour; QUALITY="--size 64" 20 minutes)
	@python=$$(scripts/bm3d.sh) || python=$(PYTHON); PYTHONDONTWRITEBYTECODE=1 "$$python" -W ignore tools/quality.py $(QUALITY)

.PHONY: scale-model
scale-model: build ## Run a thousand campaigns on 5,000 simulated workers (6 minutes; SCALE_MODEL="--rows 10000")
	@go -C internal/testbed test -c -o $(CURDIR)/bin/testbed && bin/testbed scale-model $(SCALE_MODEL)

MODEL_WALKS ?= 500

.PHONY: model
model: ## Send the verbs of a cluster in random order, with crashes at any write (10 minutes; MODEL_WALKS=500)
	@DDIFF_MODEL_WALKS=$(MODEL_WALKS) go test -count=1 -timeout 60m -v -run TestVerbsModel ./coordinator | grep -v level=

.PHONY: bad-inputs
bad-inputs: runtime ## Give more than a thousand bad inputs to ddiff (2 minutes; BAD_INPUTS=image/ those with this start)
	@DDIFF_BAD_INPUTS=$(or $(BAD_INPUTS),all) go -C cmd/ddiff test -count=1 -timeout 30m -run '^TestBadInputs$$' | \
		awk '/^inputs=/ { last = $$0; next } !/^(PASS|ok)/ { print } END { print last }'

ATTACKED = $(shell git grep -l '^func TestAttack' -- '*_test.go' ':!internal/testbed' ':!internal/charttest' | xargs dirname | sort -u | sed 's,^,./,')

.PHONY: attacks
attacks: all-packages build runtime ## Run the attacks that last minutes: full disks and divided networks of NATS, deleted results, false roles, hostile names (10 minutes; ATTACKS=NATS those with it in their name)
	@{ DDIFF_ATTACKS=1 go test -count=1 -timeout 60m -v -run '^TestAttack.*$(ATTACKS)' $(ATTACKED); \
	   go -C internal/charttest test -count=1 -v -run '^TestAttack.*$(ATTACKS)' .; \
	   DDIFF_ATTACKS=1 go -C internal/testbed test -count=1 -timeout 60m -v -run '^TestAttack.*$(ATTACKS)' .; } | \
		awk '/^ *--- / || /FAIL/ { print; fflush() } /^--- / { n++ } /^--- PASS/ { held++ } /^FAIL/ { failed = 1 } END { print "attacks=" n+0 " held=" held+0; exit n == 0 || n != held || failed }'

.PHONY: api-test
api-test: build ## Test the HTTP API: every route by every role, 100,000 items, 1,000 streams, S3, generated requests (3 minutes; REQUEST_SECONDS=600)
	@{ DDIFF_API_ITEMS=100000 DDIFF_API_STREAMS=1000 go test -count=1 -v ./internal/coordinator/serve/... ./api && \
	   go -C internal/testbed test -count=1 -timeout 15m -v -run '^Test(API|Listen)' . && scripts/api-test.sh; } | \
		awk '/^ *--- FAIL|^FAIL|_test.go:|curl|items=|item_ms|streams=|schemathesis:/ { print; fflush() } /^FAIL/ { failed = 1 } /^schemathesis: passed/ { passed = 1 } /^routes=/ { last = $$0 } \
			END { print last; exit failed || !passed || last !~ / failures=0$$/ }'

.PHONY: operate-test
operate-test: test-packages build runtime ## Operate clusters of real processes: TLS, proxies, IPv6, broken collectors, a hung store, the runbook, a day's work, disasters (15 minutes; OPERATE=TLS those with it in their name)
	@DDIFF_OPERATE=1 go -C internal/testbed test -count=1 -timeout 60m -v -run '^Test(Operate|Disaster).*$(OPERATE)' . | \
		awk '/^ *--- / || /FAIL/ || /^ *[a-z_]+_test.go:[0-9]+: / { print; fflush() } /^    --- / || /^--- .*TestDisaster/ { n++ } /^    --- PASS/ || /^--- PASS: TestDisaster/ { passed++ } \
			/^--- FAIL/ { failed = 1 } END { print "steps=" n+0 " passed=" passed+0; exit failed || n == 0 || n != passed }'

.PHONY: restore-photographs
restore-photographs: runtime ## Degrade photographs as cameras, scans and files do, restore the files, compare with the truth and classical methods (25 minutes; PHOTOGRAPHS=--no-bm3d)
	@scripts/packages.sh photographs
	@scripts/restore-photographs.sh $(PHOTOGRAPHS)

.PHONY: field-cases
field-cases: runtime ## Give files and commands of people to restore, and compare with what they should say and write (2 minutes)
	@go test -count=1 -v -run '^TestFieldCases$$' ./cmd/ddiff | \
		awk '/--- FAIL/ || /_test.go:[0-9]+: / && !/cases=/ { print } /cases=/ { sub(/.*cases=/, "cases="); counts = $$0 } /^ok/ { ok = 1 } END { print counts; exit !ok }'

.PHONY: edges
edges: runtime ## Give one collection of odd files to every door: files, folders, lists, archives, buckets, Python (1 minute)
	@go test -vet=off -count=1 -v -run '^TestEdges$$' ./cmd/ddiff | \
		awk '/_test.go:[0-9]+: / && !/doors=/ { print } /doors=/ { sub(/.*doors=/, "doors="); counts = $$0 } /^ok/ { ok = 1 } END { print counts; exit !ok }'

.PHONY: tuning-photographs
tuning-photographs: ## Download the photographs on which the preset natural was tuned for tasks that are not the paper's
	@scripts/tuning-photographs.sh

.PHONY: mutate
mutate: runtime $(GREMLINS) ## Count the small defects that the tests of a package notice (minutes to hours; MUTATE=storage)
	@$(GREMLINS) unleash --timeout-coefficient 30 ./$(or $(MUTATE),storage)

.PHONY: gradients-test
gradients-test: runtime ## Compare gradients through ONNX graphs with finite differences and PyTorch's autograd (1 minute)
	@DDIFF_GRADIENTS=1 go -C restore/onnx test -count=1 -timeout 20m -run '^TestGradient' | \
		awk '/^rules=/ { last = $$0; next } !/^(PASS|ok)/ { print } END { print last }'

.PHONY: methods-test
methods-test: runtime ## Check the rules of every method, and its answers under a known posterior (some minutes)
	@go -C internal/restore/solver test -count=1 -timeout 30m -run '^TestMethods$$' -v | \
		awk '/^    --- (PASS|FAIL|SKIP): TestMethods\/[^\/]+ / { methods++; passed += $$2 == "PASS:" } \
			!/^ *(===|--- PASS|PASS|ok)/ { print } END { printf "methods=%d passed=%d\n", methods, passed }'

.PHONY: parity
parity: runtime ## Compare steps of ddiff with stored ones of its authors' code, and its presets with the published values (2 minutes)
	@go test -count=1 -timeout 20m -run '^(TestParity|TestPublishedPresets)$$' -v ./internal/restore/solver ./restore/method | \
		awk 'match($$0, /(tasks|presets)=[0-9].*/) { line[substr($$0, RSTART, 1)] = substr($$0, RSTART); next } \
			!/^ *(===|--- PASS|PASS|ok)/ { sub(/^ *parity_test.go:[0-9]+: /, ""); print } \
			END { print line["t"], line["p"]; exit line["t"] == "" || line["p"] == "" }'

.PHONY: parity-code
parity-code: runtime ## Run a checkout of DDiff's released code beside this program, 1,000 steps (hours; CODE=DIR; TASKS=a,b PHOTOGRAPHS=a,b SIZE=64, or BENCH=1 for times)
	@test -n "$(CODE)" || { echo "parity-code: set CODE to a checkout of SoniaMinseoKim/ddiff-cvpr at ae3ce1f"; exit 2; }
	@PYTHONPATH=tools $(PYTHON) -m parity_code --code "$(abspath $(CODE))" $(if $(TASKS),--tasks $(TASKS)) $(if $(PHOTOGRAPHS),--photographs $(PHOTOGRAPHS)) \
		$(if $(SIZE),--size $(SIZE)) $(if $(BENCH),--bench) $(PARITY_CODE)

.PHONY: gradients-bench
gradients-bench: all-packages runtime ## Time the gradient through a decoder beside PyTorch's autograd (1 minute)
	@DDIFF_GRADIENT_SPEED=$(PYTHON) go -C restore/onnx test -count=1 -timeout 20m -run '^TestGradientSpeed$$' | grep -v '^PASS$$\|^ok '

.PHONY: gpu-check
gpu-check: all-packages build ## Check a GPU: pictures beside the CPU's, speed, memory, signals (GPU_CHECK="--device cuda:1")
	@$(PYTHON) tools/gpu_check.py --out docs/gpu $(GPU_CHECK)

.PHONY: kernels
kernels: ## Compile the CUDA kernels of the program to PTX, with NVIDIA's compiler library of pip; no GPU is needed
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --target .cache/nvrtc nvidia-cuda-nvrtc-cu12==12.1.105
	@$(PYTHON) tools/compile_kernels.py .cache/nvrtc/nvidia/cuda_nvrtc/lib/libnvrtc.so.12

.PHONY: gpu-bundle
gpu-bundle: build ## Make bin/gpu-bundle: the program, ONNX Runtime for CUDA and scripts for a machine with a GPU and no network (minutes of compression; ARCH=80 or all, default 90)
	@PYTHONPATH=tools $(PYTHON) -m gpu_bundle --program bin/ddiff --out bin/gpu-bundle --arch $(or $(ARCH),90)

.PHONY: gpu-bundle-test
gpu-bundle-test: all-packages build runtime ## Test the scripts of the bundle on the CPU (1 minute; the first time installs ONNX Runtime's Python module into .cache)
	@.cache/gpu-bundle/python/bin/python -c 'import onnxruntime' 2>/dev/null || { $(PYTHON) -m venv --system-site-packages .cache/gpu-bundle/python && \
		.cache/gpu-bundle/python/bin/python -m pip install --quiet --disable-pip-version-check 'numpy<2' onnxruntime==1.30.0; }
	@cd tools && ../.cache/gpu-bundle/python/bin/python -m pytest tests/test_gpu_bundle.py

.PHONY: worker-image-test
worker-image-test: ## Build the images of worker (CPU) and coordinator in clean Debian roots, and run a campaign
	@scripts/image-test.sh

.PHONY: vulnerabilities
vulnerabilities: ## Search the code for calls with known vulnerabilities (needs the database of the Go project)
	@for module in . internal/deploy; do \
		(cd $$module && go run golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION) ./...); \
	done

.PHONY: release
release: ## Build archives and wheels for linux/amd64 and arm64, and a wheel for macOS, from a tag, with SBOM, licences and provenance, in bin/release (VERSION=1.2.3-rc1 without a tag; SIGN=COMMAND)
	@scripts/packages.sh release
	@scripts/release.sh "$(VERSION)"

.PHONY: release-test
release-test: ## Build the archives of a release twice, compare their bytes, and restore an image with each, arm64 under emulation (10 minutes)
	@scripts/packages.sh release
	@scripts/packages.sh emulation || true # without it, the test skips the archive for arm64
	@DDIFF_RELEASE=1 go -C internal/deploy test -count=1 -timeout 60m -v -run '^TestRelease$$' . | grep -v '^=== '

.PHONY: deploy-test
deploy-test: runtime ## Check compose.yaml, the systemd units and every command line in them, with the real programs (2 minutes)
	@scripts/packages.sh deploy
	@go -C internal/telemetrytest build -o $(CURDIR)/bin/collector ./collector
	@DDIFF_COLLECTOR=$(CURDIR)/bin/collector go -C internal/deploy test -count=1 -timeout 20m -v . | grep -v '^=== \|^ *--- PASS'

.PHONY: compose-demo
compose-demo: ## Start the cluster of compose.yaml and run a campaign on it (needs Docker with compose)
	@scripts/compose-demo.sh

.PHONY: priors-test
priors-test: all-packages build runtime ## Export every architecture of tools/ddiff_export and check it (DDIFF_WEIGHTS=DIR: real files)
	@scripts/priors-test.sh

.PHONY: foreign-priors
foreign-priors: all-packages runtime ## Export networks with the current diffusers and PyTorch, and run them (6 GB of packages)
	@scripts/foreign-priors.sh

.PHONY: programs-test
programs-test: build runtime ## Read results with pandas and datasets, and run the recipes for wandb and MLflow (needs PyPI; DDIFF_PROGRAMS=PYTHON: an interpreter with them)
	@scripts/programs-test.sh

PRIOR_REPORT ?=

.PHONY: prior-report
prior-report: build runtime ## Compare the bundled prior with BM3D, and others (PRIOR_REPORT="--beside NAME=FILE --tasks")
	@scripts/packages.sh report
	@scripts/prior-report.sh $(PRIOR_REPORT)

.PHONY: wheel
wheel: build-packages ## Build the Python package with the program inside, in bin/wheel (ARCH=arm64: for Linux on another processor, with its cross-compiler; ARCH=macos: for macOS on arm64)
	@rm -rf bin/wheel && $(if $(filter macos,$(ARCH)),PYTHON=$(PYTHON) scripts/macos.sh bin/wheel/ddiff,CGO_ENABLED=1 GOARCH=$(ARCH) $(if $(ARCH),CC=$(subst amd64,x86_64,$(subst arm64,aarch64,$(ARCH)))-linux-gnu-gcc) go build -ldflags='-s -w -buildid=' -o bin/wheel/ddiff ./cmd/ddiff)
	@PYTHON=$(PYTHON) scripts/wheel.sh bin/wheel/ddiff bin/wheel

.PHONY: python-test
python-test: all-packages wheel ## Install the wheel in a fresh virtual environment, run its tests and notebooks (needs PyPI)
	@scripts/python-test.sh

.PHONY: docs
docs: ## Build the site of the documents as bin/site; a link or anchor without target is an error (the first time needs PyPI)
	@scripts/docs.sh

.PHONY: prior-bundle
prior-bundle: ## Write what a machine with a GPU and no network needs to train the larger prior to bin/prior-bundle (PRIOR_BUNDLE=DIR)
	@scripts/prior-bundle.sh $(PRIOR_BUNDLE)

.PHONY: latent-bundle
latent-bundle: ## Write a latent prior around the bundled one to bin/latent (LATENT_BUNDLE="--levels 1 --step 0.05 DIR")
	@go run ./internal/latentbundle $(or $(LATENT_BUNDLE),bin/latent)

.PHONY: size
size: ## Print packages, lines, words and the names that other modules may import, and write those of each package into docs/architecture.md
	@go run ./internal/repository/size

# Files that cgo makes name the folder in which they were made, and -trimpath leaves the folder out of the cache's key:
# without the folder among cgo's flags, the linters read the sources of another checkout.
.PHONY: lint
lint: export CGO_CFLAGS := $(CGO_CFLAGS) -I$(CURDIR)
lint: $(GOLANGCI_LINT) ## Check format and run golangci-lint, with govet and the import directions
	@bad=0; \
	unformatted=$$(gofmt -l .); \
	test -z "$$unformatted" || { printf 'not formatted by gofmt:\n%s\n' "$$unformatted"; bad=1; }; \
	for module in . internal/testbed internal/deploy; do \
		(cd $$module && $(CURDIR)/$(GOLANGCI_LINT) run --config $(CURDIR)/.golangci.yml ./...) || bad=1; \
	done; \
	(cd internal/telemetrytest && $(CURDIR)/$(GOLANGCI_LINT) run --config $(CURDIR)/.golangci.yml .) || bad=1; \
	exit $$bad

# The Kubernetes API server and etcd of the chart's tests, of the versions that their module pins.
KUBERNETES := $(shell sed -n 's|^.*k8s.io/kubernetes \(v[0-9.]*\).*|\1|p' internal/charttest/apiserver/go.mod | head -n 1)
KUBE       := bin/kube-$(KUBERNETES)

.PHONY: chart-test
chart-test: build-packages $(KUBE)/kube-apiserver ## Lint and render the Helm chart, and apply it on a real Kubernetes API server (the first time builds it, 10 minutes or more)
	@(cd internal/charttest && go vet ./... && go test -count=1 -timeout 20m) | \
		awk '/^values=/ { last = $$0; next } !/^(PASS|ok)/ { print } END { print last }'

.PHONY: chart-files
chart-files: ## Copy the files that the chart contains and render its examples
	@cp docs/security/nats-accounts.conf charts/ddiff/files/nats-accounts.conf
	@cp deploy/prometheus/rules.yaml charts/ddiff/files/rules.yaml
	@cd internal/charttest && go test -count=1 -run '^TestRenderedObjects$$' -update .

.PHONY: test-full
test-full: test test-all chart-test telemetry-test deploy-test release-test ## Run every test, also those that download or build much (hours)

.PHONY: fuzz
fuzz: ## Run each fuzz target for ten seconds (FUZZTIME=1m: for a minute)
	@scripts/fuzz.sh $(or $(FUZZTIME),10s)

.PHONY: page
page: ## Build the page of campaigns from its sources; needs npm
	cd internal/coordinator/serve/page && npm ci --ignore-scripts && npm run build

.PHONY: page-test
page-test: all-packages build runtime ## Use the page in a browser over a cluster, check its accessibility, write docs/images (2 minutes)
	@mkdir -p docs/images
	@DDIFF_SCREENSHOTS=$(CURDIR)/docs/images go -C internal/testbed test -count=1 -timeout 15m -run '^TestPage$$' -v . | \
		awk 'match($$0, /pages=.*/) { last = substr($$0, RSTART); next } !/^(===|--- PASS|PASS|ok)/ { print } END { print last; exit last == "" }'

.PHONY: golden
golden: ## Write the expected reports of tests anew, after a change of a table or a new metric; read the difference
	@go test -vet=off ./internal/report ./internal/report/aggregate ./internal/report/table -update >/dev/null

.PHONY: module
module: ## Give the module the path that others import it by (MODULE=host/owner/ddiff)
	@scripts/module.sh $(MODULE)

.PHONY: generate
generate: ## Regenerate code; needs protoc (Debian: protobuf-compiler)
	go build -o bin/protoc-gen-go google.golang.org/protobuf/cmd/protoc-gen-go
	go generate ./...

.PHONY: build
build: build-packages ## Build bin/ddiff, without tables for debuggers
	@go build -ldflags='-s -w' -o bin/ddiff ./cmd/ddiff

.PHONY: runtime
runtime: build ## Install ONNX Runtime into the user's cache, unless there is one
	@bin/ddiff runtime where >/dev/null 2>&1 || bin/ddiff runtime install

.PHONY: clean
clean: ## Remove built files; results and the user's cache stay
	rm -rf bin .cache

.PHONY: build-packages test-packages all-packages
build-packages test-packages all-packages:
	@scripts/packages.sh $(@:-packages=)

$(GOLANGCI_LINT):
	@echo "building golangci-lint $(GOLANGCI_LINT_VERSION); the first time takes some minutes"
	@GOBIN=$(CURDIR)/$(@D) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)

$(GOTESTSUM):
	@GOBIN=$(CURDIR)/$(@D) go install gotest.tools/gotestsum@$(GOTESTSUM_VERSION)

$(GREMLINS):
	@GOBIN=$(CURDIR)/$(@D) go install github.com/go-gremlins/gremlins/cmd/gremlins@$(GREMLINS_VERSION)

$(KUBE)/kube-apiserver: internal/charttest/apiserver/go.mod
	@echo "building etcd and kube-apiserver $(KUBERNETES); the first time takes 10 minutes or more"
	@mkdir -p $(KUBE)
	@cd internal/charttest/apiserver && export CGO_ENABLED=0 && \
		nice go build -ldflags='-s -w' -o $(CURDIR)/$(KUBE)/etcd go.etcd.io/etcd/server/v3 && \
		nice go build -ldflags='-s -w -X k8s.io/component-base/version.gitVersion=$(KUBERNETES)' \
			-o $(CURDIR)/$(KUBE)/kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver
	@touch $@
