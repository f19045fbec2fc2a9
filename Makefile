# The two commands to know: `make demo` and `make test`. Both set up what they need first.

TARGET ?= $(if $(CARGO_TARGET_DIR),$(CARGO_TARGET_DIR),$(CURDIR)/target)
VENV   ?= $(TARGET)/test-venv
NODE   ?= $(TARGET)/test-node
COLLECTOR ?= $(TARGET)/test-collector
OPENSEARCH ?= $(TARGET)/test-opensearch
APM    ?= $(TARGET)/test-apm
SHIPPERS ?= $(TARGET)/test-shippers
PIPELINE_ORACLE ?= $(TARGET)/test-pipeline-oracle
REAL   ?= $(TARGET)/test-real
BROWSER ?= $(TARGET)/test-browser
PAGES  ?= $(TARGET)/test-pages
BOOK   ?= $(TARGET)/book
export CARGO_TARGET_DIR := $(TARGET)
export TIDEGATE_TEST_PYTHON := $(VENV)/bin/python
export TIDEGATE_TEST_NODE_MODULES := $(NODE)/node_modules
export TIDEGATE_TEST_COLLECTOR := $(COLLECTOR)/collector
export TIDEGATE_TEST_OPENSEARCH := $(OPENSEARCH)
export TIDEGATE_TEST_APM_GO := $(APM)/agent-go
export TIDEGATE_TEST_APM_JAVA := $(APM)/java
export TIDEGATE_TEST_APM_ORACLE := $(APM)/oracle
export TIDEGATE_TEST_SHIPPERS := $(SHIPPERS)
export TIDEGATE_TEST_PIPELINE_ORACLE := $(PIPELINE_ORACLE)/oracle
export TIDEGATE_TEST_BROWSER := $(BROWSER)
export TIDEGATE_BIN := $(TARGET)/release/tidegate

# Where `make install-sender-c` puts the library; DESTDIR goes before it.
PREFIX ?= /usr/local

.PHONY: demo test test-real pages pages-update unit loom programs python packages fuzz fuzz-long forks bench lint install install-sender-c setup setup-test docs book

## run the gateway with no configuration, and send it a trickle of metrics
demo: setup
	cargo build --release -p tidegate
	$(TIDEGATE_BIN) demo

## every test: set-up, the console's pages, unit and property tests, concurrency, whole programs, the sender from Python, a short fuzz run
test: setup-test pages unit loom programs python packages fuzz

## before a release: real receivers and senders that take minutes to build (Thanos, VictoriaMetrics, vmagent, Telegraf, opampsupervisor, a kube-apiserver)
test-real: setup
	cargo build --release -p tidegate
	scripts/test-real $(REAL)

pages:
	scripts/pages $(PAGES)

## build the console's pages anew, after their sources have changed
pages-update:
	scripts/pages $(PAGES) --update

unit:
	cargo test --workspace --exclude tidegate-tests

loom:
	RUSTFLAGS="--cfg loom" cargo test --target-dir $(TARGET)/loom -p tidegate-arena --test loom
	RUSTFLAGS="--cfg loom" cargo test --target-dir $(TARGET)/loom -p tidegate-limit --test loom
	RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=2 \
		cargo test --target-dir $(TARGET)/loom -p tidegate-journal --lib queue
	RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=2 \
		cargo test --target-dir $(TARGET)/loom -p tidegate-sender --lib --no-default-features ring
	RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=2 \
		cargo test --target-dir $(TARGET)/loom -p tidegate-bulk --lib --no-default-features loom

programs:
	cargo build --release -p tidegate
	cargo test --release -p tidegate-tests

python:
	crates/sender-python/run-tests

## the sender's packages, each installed from here into a clean folder
packages:
	scripts/try-sender

fuzz:
	fuzz/run 5

## every fuzz target for long, by default an hour each: make fuzz-long HOURS=8; what it learns is kept beside the build
HOURS ?= 1
fuzz-long:
	fuzz/long $(HOURS)

## ten thousand forks of each kind of program, while threads start, end, resolve names and shake hands
forks:
	TIDEGATE_FORKS=10000 cargo test -p tidegate-sender-c --test fork -- --test-threads 1
	TIDEGATE_FORKS=10000 crates/sender-python/run-tests -p test_forks.py

## measure; prints a table and writes bench/results/
bench: setup
	cargo build --release -p tidegate
	cargo build --release -p tidegate-bench
	bench/run

## format, lints, licences
lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	scripts/deny

## the binary that users install: smaller, faster, slower to build
install:
	cargo build --profile dist -p tidegate
	install -D $(TARGET)/dist/tidegate $(DESTDIR)/usr/local/bin/tidegate

## the sender for C: libraries, header, and the file for pkg-config
install-sender-c:
	cargo build --release -p tidegate-sender-c
	DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)" crates/sender-c/install $(TARGET)/release

docs:
	UPDATE_DOCS=1 cargo test -p tidegate-config --test documents

## the documentation as a site, searchable and without a server: open book/index.html beside the build
book:
	scripts/book $(BOOK)

setup:
	@scripts/setup build

setup-test: setup
	@scripts/setup test $(VENV) $(NODE) $(COLLECTOR) $(OPENSEARCH) $(APM) $(SHIPPERS) $(PIPELINE_ORACLE) $(BROWSER)
