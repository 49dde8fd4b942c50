# The index of commands. Each says what it does with `make help`.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help bootstrap page-check page-pictures build dist deb server-image engine-image image demo picture selftest verify traces libraries flakes exploits test test-rust test-python fuzz bench-split bench-case flame check fmt reasons bench image-repro

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

bootstrap: ## install and start what is missing: Docker Engine, mmdebstrap
	@deploy/bootstrap.sh

build: ## both binaries, into target/debug
	cargo build --locked --bins

dist: ## one static client for CI jobs: dist/tribunal and its SHA-256
	deploy/dist.sh

deb: ## a Debian package of both programs, the unit and the docs: dist/tribunal_VERSION_ARCH.deb
	deploy/deb.sh

server-image: bootstrap ## the server in a container, tribunal/server:local, without a registry
	deploy/server-image.sh

engine-image: bootstrap ## an engine for deploy/compose.yaml, tribunal/engine:local, without a registry
	deploy/engine-image.sh

image: bootstrap build ## the runner image tribunal/python:3.13
	deploy/image.sh

demo: bootstrap ## an honest commit comes back as MERGE_OK, a cheating one as MERGE_BLOCKED
	deploy/demo.sh

picture: bootstrap ## docs/demo.svg from a fresh run of the demo
	rm -rf target/demo-data
	deploy/demo.sh 2>&1 | sed -e 's|$(CURDIR)/||g' -e 's|/tmp/tmp[.][A-Za-z0-9]*/||g' -e '/^$$ cosign/,$$d' | deploy/picture.py "make demo" > docs/demo.svg

selftest: bootstrap build image ## known ways of gaming a grader, on this machine: a plain gate beside this server
	deploy/selftest.sh

verify: ## the demo's three verdicts, verified by ssh-keygen, openssl and cosign
	deploy/verify.sh demo_out/honest

test: bootstrap build test-python test-rust ## everything: unit, conformance, black-box on real containers

test-rust:
	cargo test --locked --workspace --no-fail-fast

test-python:
	images/python/tests/run.sh

traces: bootstrap ## a server with the feature otel, and what it tells a collector; built apart, in target/otel
	@mkdir -p target/otel target/tribunal-tests && ln -sfn ../tribunal-tests target/otel/tribunal-tests
	CARGO_TARGET_DIR=target/otel cargo test --locked --package tribunal-tests --features otel --test otel_export

fuzz: ## the split's codec and both its ends under mutated frames, for an hour (FUZZ_SECONDS=3600)
	docker run --rm --network none --volume "$(CURDIR)/images/python:/python:ro" --env PYTHONPATH=/opt/tribunal/runner --env PYTHONDONTWRITEBYTECODE=1 --entrypoint /usr/bin/python3 $${TRIBUNAL_RUNNER_IMAGE:-tribunal/python:3.13} /python/tests/split/fuzz.py --seconds $${FUZZ_SECONDS:-3600}

bench-split: ## what a call across the split costs, beside a plain one
	docker run --rm --network none --cpus 1 --volume "$(CURDIR)/images/python:/python:ro" --env PYTHONPATH=/opt/tribunal/runner --env PYTHONDONTWRITEBYTECODE=1 --entrypoint /usr/bin/python3 $${TRIBUNAL_RUNNER_IMAGE:-tribunal/python:3.13} /python/tests/split/bench.py

bench-case: bootstrap ## what an attempt costs for each case of a large suite, beside pytest with a repeat plug-in
	python3 images/python/tests/container/cost.py

flame: bootstrap ## where an attempt's processor time goes: docs/bench/flame.svg
	python3 images/python/tests/container/flame.py tests/examples/bench/suites/test_intervals.py tests/examples/bench/suites/intervals.py docs/bench/flame.svg

check: ## formatting, lints, licences
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets --features tribunal-server/otel -- -D warnings
	deploy/ruff.sh
	deploy/lint-ci.sh
	deploy/lint-proto.sh
	@if command -v cargo-deny >/dev/null; then cargo deny --locked check bans licenses sources; else echo "cargo-deny is not installed: licences and bans are not checked here"; fi

libraries: bootstrap ## real libraries under their own suites, plain and split; the table goes into docs/SPLIT.md
	python3 images/python/tests/libraries/run.py --write $(if $(MUTANTS),--mutants $(MUTANTS))

flakes: bootstrap ## the flake zoo in 100 attempts; the table goes into docs/FLAKES.md
	FLAKES=long cargo test --locked --workspace --test flake_zoo -- --nocapture

exploits: bootstrap ## the corpus of exploits, with the honest repair over every base of its own
	EXPLOITS=long cargo test --locked --workspace --test exploits

page-check: bootstrap ## the page over HTTP and in headless Chromium: inert text, keyboard, small screens, axe, no script, live scores
	cargo test --locked --workspace --test page -- --nocapture

page-pictures: bootstrap ## docs/page/*.png from a fresh history: 1280 and 400 pixels, light and dark
	cargo build --locked --workspace --bins --examples
	python3 -c 'import PIL' 2>/dev/null || python3 -m pip install --quiet --disable-pip-version-check --target target/tools/pillow pillow
	PYTHONPATH=target/tools/pillow target/debug/examples/pictures

reasons: ## docs/REASONS.md from the codes
	cargo run -q --locked -p tribunal-core --example reasons > docs/REASONS.md.new && mv docs/REASONS.md.new docs/REASONS.md

fmt: ## format Rust and Python
	cargo fmt --all
	deploy/ruff.sh --fix

bench: bootstrap ## what a score costs beside its peers, in one run
	cargo build --locked --release --workspace --bins --examples
	target/release/examples/bench $(BENCH)

image-repro: bootstrap build ## build the image twice from nothing and compare the ids
	deploy/image.sh --twice
