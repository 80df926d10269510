# The things one does here. Each installs what it needs on a fresh Debian or Ubuntu with a Rust toolchain.

.PHONY: demo install test lint book wheel release bench accuracy experiments soak fuzz miri faults

# The main job, from nothing to a report: serve, load at five rates, model, report.
demo:
	@./tools/install
	cargo build --release --locked --package kendall
	./target/release/kendall run experiments/quickstart.toml --open

# The command for every folder: kendall in ~/.cargo/bin.
install:
	@./tools/install
	KENDALL_REVISION=$$(git describe --always --dirty --abbrev=12) cargo install --locked --path crates/kendall

# All tests, those against real servers included. Most of them wait, for a process, a socket or the clock, so twice as many run
# at a time as there are processors. Examples measure, and `make lint` compiles them: tests need none of them.
test: export KENDALL_LEFT_OUT := $(CURDIR)/target/left-out
test: export RUST_TEST_THREADS ?= $(shell echo $$((2 * $$(nproc))))
test:
	@./tools/install test
	@rm -f target/left-out
	cargo test --workspace --locked --no-fail-fast --lib --bins --tests
	cargo test --workspace --locked --no-fail-fast --doc
	@echo "Left out of the tests:"; sort -u target/left-out 2>/dev/null | grep . || echo "nothing"

# Format, lints and documentation, warnings as errors, and the words of text and types (docs/glossary.md has the terms).
lint:
	@./tools/install
	cargo fmt --all --check
	cargo test --package kendall-structure --locked --test it -- plain_words type_names
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked

# The documentation as a book, in target/book/index.html. It is built without a network, and loads nothing from one.
book:
	@./tools/install book
	mkdocs build --strict

# The Python package as a wheel in target/wheels, tested in a clean virtual environment.
wheel:
	@./tools/install
	./tools/wheel

# What users install, in target/release-files: a static program in an archive, a container image and a Debian package, each tested where
# there is nothing else. `make release TWICE=1` also builds a copy of the sources elsewhere, and compares the files.
release:
	@./tools/install release
	./tools/release

# Speed on this machine, written to docs/benchmarks.md. `make bench ONLY="curve link"` prints some sections, and writes nothing.
bench:
	@./tools/install bench
	cargo build --release --locked --package kendall --package kendall-bench
	WITHOUT_TESTS=1 ./tools/wheel && target/peers/python/bin/pip install --quiet --force-reinstall target/wheels/kendall-*.whl
	PATH="$(CURDIR)/target/peers/bin:$$PATH" PEERS_PYTHON="$(CURDIR)/target/peers/python/bin/python" \
		./target/release/kendall-bench $(ONLY)

# How right predictions are: validates every server of experiments/validate that has no result in results/accuracy yet, and writes
# docs/accuracy.md from all results there. `make accuracy ONLY="node nginx-gzip" ROUNDS=3 LOW=10s FOR=2m` for some servers, and longer.
# The repository has the results of the page: remove results/accuracy first to measure every server on this machine.
accuracy:
	@./tools/install accuracy
	cargo build --release --locked --package kendall --package kendall-bench
	./target/release/kendall-bench accuracy $(ONLY) -- --rounds $(or $(ROUNDS),2) --low-duration $(or $(LOW),8s) \
		--duration $(or $(FOR),40s)

# What the experiments found: runs every file of experiments/ that has no complete run of this version in results/experiments yet, and
# writes docs/results.md from all results there. It says first how long that takes; Ctrl-C keeps what is done, and the same command
# continues. `make experiments ONLY="reverse recover/network"` for some, ONLY=--plan for the times, ONLY=--page for the page alone.
# The repository has what the page shows of each run: remove results/experiments first to run every file on this machine.
experiments:
	@./tools/install experiments
	cargo build --release --locked --package kendall --package kendall-bench
	./target/release/kendall-bench experiments $(ONLY)

# An hour of mixed load on each server, all at the same time, with memory, descriptors, response times and logs watched; writes
# docs/soak.md. `make soak FOR=10m` for less, `make soak ONLY="hold chat"` for some, which writes nothing, and
# `make soak OPTIONS=--one-by-one` for an hour each.
soak:
	@./tools/install test
	cargo build --release --locked --package kendall --package kendall-faults
	./target/release/kendall-faults soak --for $(or $(FOR),1h) --seed $(or $(SEED),1) $(OPTIONS) $(ONLY)

# Every fuzz target for a minute, by libFuzzer. `make fuzz FOR=10m` for more, `make fuzz ONLY="packet copy"` for some, and
# `make fuzz FOR=1h CASES=10000000` until the table in docs/fuzzing.md has that many cases of each.
fuzz: export FUZZ_CASES := $(CASES)
fuzz:
	@./tools/install fuzz
	./tools/fuzz $(or $(FOR),60s) $(ONLY)

# The tests of `unsafe` code that Miri can run, by Miri in a pinned nightly Rust, which this installs: some minutes.
miri:
	@./tools/install
	./tools/miri

# The fault campaign (docs/faults.md), which goes on where it was interrupted if SEED is given, and hostile input, ten times the cases of
# `make test`, both from a seed that the clock draws. A failing case prints the command that repeats it:
# make faults SEED=7 CASE='files 17', make faults SEED=7 CASE='campaign 17'. `make faults CASES=1000` for a longer campaign.
faults: export KENDALL_FAULTS_SEED := $(or $(SEED),$(shell date +%s))
faults: export KENDALL_FAULTS_TIMES := $(or $(TIMES),10)
faults: export KENDALL_FAULTS_CASE := $(CASE)
faults:
	@./tools/install test
	cargo build --release --locked --package kendall --package kendall-faults
	./target/release/kendall-faults --seed $$KENDALL_FAULTS_SEED --cases $(or $(CASES),520) \
		$(if $(CASE),--only "$(CASE)",--page docs/faults.md)
	cargo test --package kendall --locked --bin kendall --test it -- hostile:: --nocapture
