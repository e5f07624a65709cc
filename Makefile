# The targets of this project. `make demo` demonstrates moult and `make test` tests it.
.PHONY: lint install put put-reader artifactbundle deb clean

SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
PREFIX ?= /usr/local

# Debian packages for the build: libraries and the linker.
BUILD := libsqlite3-dev libarchive-dev libssl-dev libzstd-dev libcurl4-openssl-dev libseccomp-dev nettle-dev liblzma-dev libbz2-dev zlib1g-dev pkg-config lld
# Debian packages for `make test`: other programs that read or write the same files, a web server, and a tracer.
QUICK_DEPS := $(BUILD) sqlite3 strace python3 libarchive-tools nginx openssl procps curl git zstd xz-utils zip unzip p7zip-full xxd minisign gcc libc6-dev
# Debian packages that only the tests tagged as thorough and the other targets use.
ALL := $(QUICK_DEPS) btrfs-progs util-linux systemd docker-registry skopeo apache2-utils rsync fish zsh groff mandoc prometheus rclone softhsm2 opensc
PROOF := $(ALL) e2fsprogs xfsprogs
BENCH_DEPS := $(ALL) sqlite3-tools xdelta3 bsdiff time
# Programs to compare with; the tables leave out those that cannot be installed.
PEERS := swupdate rauc casync ostree cpio squashfs-tools dbus xxhash

# $(call needs,TARGET,TIME,PACKAGES,OPTIONAL): with the prerequisite TARGET-packages, a target says how long it takes, with its
# build, and installs its packages.
needs = $(eval .PHONY: $(1) $(1)-packages)$(eval $(1)-packages: ; @MAKECMDGOALS="$(MAKECMDGOALS)" scripts/install-packages $(1) "$(2)" $(3) $(if $(4),-- $(4)))

$(call needs,demo,6 minutes,$(BUILD))
$(call needs,build,4 minutes,$(BUILD))
$(call needs,release,6 minutes,$(BUILD))
$(call needs,docs,6 minutes,$(BUILD))
$(call needs,test,8 minutes,$(QUICK_DEPS))
$(call needs,sample,6 minutes,$(PROOF))
$(call needs,test-all,2 hours,$(PROOF))
$(call needs,sanitize-quick,15 minutes,$(ALL))
$(call needs,test-sanitize,2 hours,$(PROOF) valgrind)
$(call needs,model,1 hour,$(ALL))
$(call needs,faults,2 hours,$(ALL))
$(call needs,fuzz,20 minutes,$(BUILD))
$(call needs,proof,1 hour,$(PROOF))
$(call needs,mutants,1 hour,$(PROOF))
$(call needs,reverted,8 hours,$(ALL))
$(call needs,crowd,15 minutes,$(PROOF))
$(call needs,ledger,15 minutes,$(PROOF))
$(call needs,histories,1 hour,$(PROOF))
$(call needs,comparisons,10 minutes,$(PROOF))
$(call needs,known,15 minutes,$(PROOF))
$(call needs,broken,10 minutes,$(ALL))
$(call needs,drills,8 minutes,$(ALL))
$(call needs,attacks,20 minutes,$(ALL))
$(call needs,zoo,20 minutes,$(BUILD) python3 python3-venv,fossil rpm vnstat subversion libnss3-tools)
$(call needs,load,30 minutes,$(ALL))
$(call needs,simulate,10 minutes,$(ALL))
$(call needs,load-servers,20 minutes,$(ALL))
$(call needs,bench-registry,10 minutes,$(ALL))
$(call needs,soak,12 minutes,$(PROOF))
$(call needs,limits,10 minutes,$(BENCH_DEPS),$(PEERS))
$(call needs,bench,20 minutes,$(BENCH_DEPS),$(PEERS))
$(call needs,bench-report,30 minutes,$(BENCH_DEPS),$(PEERS))
$(call needs,reader-test,10 minutes,$(BUILD) gcc g++ libc6-dev sqlite3 python3 binutils procps valgrind $(if $(shell command -v rustc),,rustc))
$(call needs,python-test,15 minutes,$(BUILD) python3 python3-venv binutils debootstrap)
$(call needs,programs,15 minutes,$(BUILD) gcc libc6-dev python3 python3-venv,golang-go golang-github-mattn-go-sqlite3-dev default-jdk-headless libxerial-sqlite-jdbc-java nodejs node-sqlite3 util-linux)
$(call needs,portable-test,15 minutes,$(ALL))
$(call needs,deb-test,15 minutes,$(BUILD) debootstrap gcc libc6-dev lintian)
$(call needs,dist,8 minutes,$(BUILD) dpkg-dev gcc libc6-dev python3 python3-pip python3-venv binutils ca-certificates)
$(call needs,dist-test,12 minutes,$(BUILD) debootstrap python3 binutils ca-certificates minisign skopeo)
$(call needs,ansible-test,10 minutes,$(BUILD) python3-venv iproute2 openssh-client dropbear-bin)
$(call needs,containers-test,10 minutes,$(BUILD) buildah podman runc busybox-static gcc libc6-dev)

SWIFT_FLAGS := --explicit-target-dependency-import-check error
# Without debug information, the build of the tests takes a tenth less time; the names in the backtrace of a crash remain.
DEBUG_FLAGS := -debug-info-format none $(SWIFT_FLAGS)
# The tests have a build of their own, with the options of `isTestBuild` in Package.swift. As in a release (see below), the command is
# static-pie, without a run path.
BUILD_TESTS := MOULT_TEST_BUILD=1 swift build --build-tests --scratch-path .build/tests --disable-local-rpath $(DEBUG_FLAGS)
BUNDLE := .build/tests/debug/moultPackageTests.xctest
# The command is one static file, because loading seven shared libraries would take longer than an update that changes
# nothing. It is linked as static-pie, so that its addresses are random, because the command reads untrusted archives; packed
# relocations make that cheap. A static-pie program with a run path crashes in the C library at startup.
RELEASE_FLAGS := -c release --static-swift-stdlib --disable-local-rpath -Xswiftc -static-executable -Xswiftc -Xclang-linker -Xswiftc -static-pie \
	-Xswiftc -use-ld=lld -Xlinker -z -Xlinker pack-relative-relocs -Xlinker --strip-all $(SWIFT_FLAGS)

# moult-fetch cannot be static, because a static libcurl lacks features that users expect.
FETCH_FLAGS := -c release --static-swift-stdlib --disable-local-rpath --scratch-path .build/fetch -Xswiftc -use-ld=lld \
	-Xlinker --strip-all $(SWIFT_FLAGS)

build: build-packages
	swift build $(DEBUG_FLAGS)

# Builds the command as it is installed: one file that does not need a Swift runtime.
release: release-packages
	swift build $(RELEASE_FLAGS) --product moult
	swift build $(FETCH_FLAGS) --product moult-fetch
	cp -f .build/fetch/release/moult-fetch .build/release/moult-fetch

demo: demo-packages release
	@scripts/demo .build/release/moult

lint:
	swift format lint --strict --recursive Package.swift Sources Plugins Tests Examples Fuzz
	scripts/check-arrows
	scripts/check-guarantees
	scripts/check-hops
	scripts/check-gate
	scripts/check-bytes
	scripts/check-paths
	scripts/check-tags
	scripts/check-descriptors
	scripts/check-scans
	scripts/codes
	scripts/fields
	scripts/check-words
	scripts/size
	scripts/ledger/mutations --list >/dev/null

# Builds the documentation of the public API as archives that any web server can serve; fails on a warning, or on a symbol
# without a doc comment.
docs: docs-packages build
	scripts/docs .build/docs

# Every change must pass this: lint, and all tests that are not tagged as thorough, with a debug build.
test: test-packages lint
	$(BUILD_TESTS)
	scripts/test --untagged thorough $(BUNDLE)

# Everything that must be true of a release, all cases of the tests tagged as sampled, and all tests with a process for each
# command. The tests tagged as thorough build other packages, simulate power failures, kill the installed command at its system
# calls, repeat an update many times, and use programs that `make test` does not install. Run `make test` first.
# Without --disable-build-manifest-caching, SwiftPM does not see files that are new in this package. With it, plugins run again in
# every build, so the tests build without it.
test-all: test-all-packages release docs
	$(BUILD_TESTS)
	PATH="$(dir $(abspath $(MOULT))):$$PATH" swift build --package-path Examples --scratch-path .build/examples \
		--disable-build-manifest-caching
	scripts/check-api .build/tests/debug
	MOULT_CASES=all MOULT_PROCESSES=1 scripts/test --limit 1800 $(BUNDLE)
	$(MAKE) --no-print-directory sample
	scripts/recipes
	scripts/sample-package $(MOULT)
	$(MAKE) --no-print-directory zoo attacks known programs drills
	$(MAKE) --no-print-directory reader-test python-test portable-test sanitize-quick containers-test deb-test dist-test ansible-test

# Samples of the random stories, of the killed flows, of the apps that write during updates, and of the broken stores.
sample: sample-packages release
	scripts/proof/run .build/release/moult --sample 20 \
		--flow "first install" --flow "update" --flow "rollback" --flow "shared" \
		--flow "shared, WAL" --flow "shared, WAL, changes recorded" --flow "user migration" --flow "patch" --flow "external step" --flow "feed fetch" \
		--flow "chain of two releases" --flow "cache reset" --flow "first install over a file, shared" \
		--flow "rows left behind" --flow "migration that changes values" --flow "first install over a file, reference" --flow "restore of a file from before moult" \
		--flow "restore, user, WAL" --flow "several databases, WAL" \
		--flow "replace a file" --flow "undo the replacement of a file" \
		--flow "first publish" --flow "publish the next release" --flow "renew" --flow "publish --trust"
	scripts/proof/waits .build/release/moult --rows 1000 --rows 100000
	scripts/proof/crowd .build/release/moult --rounds 2 \
		--flow "update" --flow "rollback" --flow "shared" --flow "shared, WAL" --flow "user migration" \
		--flow "rows left behind" --flow "migration that changes values, WAL" --flow "first install over a file, shared"
	scripts/ledger/run .build/release/moult --stories 60 --save .build/ledger
	scripts/histories/run .build/release/moult --histories 10
	scripts/comparisons/run .build/release/moult --pairs 120
	scripts/broken/run .build/release/moult --page docs/proof.md

# Runs the tests of the modules that read untrusted bytes with the address sanitizer, without those of confined processes and files.
NOT_SANITIZED := Tests/MoultArchiveTests/Sandbox $(wildcard Tests/MoultFilesTests/*.swift)
sanitize-quick: sanitize-quick-packages
	MOULT_TESTS=MoultArchiveTests,MoultSQLiteTests,MoultFilesTests,StepKitTests MOULT_SANITIZE=1 \
		swift build --build-tests --sanitize=address --scratch-path .build/address $(SWIFT_FLAGS)
	MOULT_SANITIZE=1 ASAN_OPTIONS=detect_leaks=0:handle_segv=0 setarch -R scripts/test --untagged thorough \
		--skip "$$(grep -rhoP 'struct \K\w+Tests\b' $(NOT_SANITIZED) | sed 's/.*/[.]&\//' | paste -sd '|')" .build/address/debug/moultPackageTests.xctest

# Runs all tests that are not tagged as thorough with the address sanitizer and with the thread sanitizer, and two updates under
# valgrind. This takes over an hour on two idle cores. `make test-sanitize LEVEL=` also runs the thorough tests. Every finding in
# any process that a test starts is written to a file with the name of the program, and makes the target fail.
# - valgrind looks for leaks: XCTest itself leaks, and traced or confined processes cannot be inspected.
# - SANITIZED removes the memory limit of the checking process, because the sanitizers map terabytes of addresses.
# - Some tests crash a checking process with SIGSEGV on purpose: its parent must notice this, and it is not a finding.
# - The thread sanitizer reports state protected by Swift's Mutex as a race: see scripts/thread-sanitizer.supp.
# - Under a limit on the size of files, or where `write` fails, the thread sanitizer cannot write its own temporary file, and
#   crashes with SIGBUS. Swift's crash handler then makes it report a failed CHECK (`!thr->slot`). So FILE_LIMITED tests are left out.
# - Address randomization is off, because newer kernels place programs where the thread sanitizer has its memory map.
# - valgrind supports neither the instructions of newer processors nor the sanitizers, so it has a separate build.
REPORTS = $(CURDIR)/.build/sanitizer-reports
SANITIZERS := address thread
LEVEL = --untagged thorough
FILE_LIMITED := keygen fails if it cannot write the key|a file larger than the shell|an undo that fails because the disk is full

test-sanitize: test-sanitize-packages
	rm -rf $(REPORTS) && mkdir -p $(REPORTS)
	@for sanitizer in $(SANITIZERS); do \
		export MOULT_SANITIZE=1 ASAN_OPTIONS=exitcode=66:log_path=$(REPORTS)/address:log_exe_name=1:disable_coredump=0:detect_leaks=0:handle_segv=0 \
			TSAN_OPTIONS=exitcode=66:log_path=$(REPORTS)/thread:log_exe_name=1:disable_coredump=0:handle_segv=0:handle_sigbus=0:suppressions=$(CURDIR)/scripts/thread-sanitizer.supp; \
		swift build --build-tests --sanitize=$$sanitizer --scratch-path .build/$$sanitizer $(SWIFT_FLAGS) && \
		setarch -R scripts/test $(LEVEL) --skip "$$(test $$sanitizer = address && echo '(?!)' || echo '$(FILE_LIMITED)')" --limit 3600 .build/$$sanitizer/debug/moultPackageTests.xctest || exit; done
	@if ls $(REPORTS)/* >/dev/null 2>&1; then tail -n +1 $(REPORTS)/*; exit 1; fi
	MOULT_SANITIZE=1 swift build --product moult --scratch-path .build/memcheck $(SWIFT_FLAGS)
	scripts/memcheck .build/memcheck/debug/moult

# Tests every disk state that a power failure may leave, according to the model of the file system in Tests/ExecutionTests/Model;
# `make test-all` tries a sample.
model: model-packages
	$(BUILD_TESTS)
	MOULT_MODEL=all scripts/test --only '^ExecutionTests.PowerCutTests' --limit 7200 $(BUNDLE)

# Makes each call of `Syscall` in an update and in a reset fail, alone or with all later calls, changes each byte of archives to
# each other value, and kills an update of two databases at each rename, removal, sync and write of SQLite; `make test-all` tries
# a sample.
faults: faults-packages
	$(BUILD_TESTS)
	MOULT_FAULTS=all MOULT_LONG_TESTS=1 scripts/test --only 'FaultTests|ChangedByteTests|AllOrNoneTests' --limit 7200 $(BUNDLE)

# Runs each reader of untrusted bytes for FUZZ_SECONDS under libFuzzer. Inputs that crash a reader are kept in .build/fuzz;
# turn each of them into a test. With SLOW=1, looks for inputs that take a reader longer than in proportion to their size.
FUZZ_SECONDS ?= 60
READERS := json manifest draft feed signature key versions script archive patch difference

fuzz: fuzz-packages
	MOULT_FUZZ=1 swift build --scratch-path .build/fuzz --product Fuzz -Xswiftc -sanitize=fuzzer $(SWIFT_FLAGS)
	@for reader in $(READERS); do echo "fuzz: $$reader"; mkdir -p .build/fuzz/found/$$reader; \
		$(if $(SLOW),.build/fuzz/debug/Fuzz $$reader --slow $(FUZZ_SECONDS) .build/fuzz Fuzz/corpus/$$reader || exit; done,\
		.build/fuzz/debug/Fuzz $$reader -max_total_time=$(FUZZ_SECONDS) -timeout=10 -max_len=8192 -verbosity=0 -print_final_stats=1 \
			-artifact_prefix=.build/fuzz/$$reader- .build/fuzz/found/$$reader Fuzz/corpus/$$reader || exit; done)

# Kills the built command at every system call that changes a disk. Points that leave the same state are tried once, and one in a
# hundred of the others is tried, too. SAMPLE=50 tries about 50 points per flow, and does not write the tables to docs/proof.md. Power failures need root, loop devices and mkfs.xfs; skipped parts are reported.
proof: proof-packages release
	scripts/proof/run .build/release/moult $(if $(SAMPLE),--sample $(SAMPLE),--results .build/proof.json --page docs/proof.md)

# Makes N random changes to the engine, the store, rows, feeds and trust, one at a time, in a copy of the last commit; for each, runs the
# tests of its module and 60 stories up to the first failure. Reports the changes that nothing finds. Runs continue and add up.
mutants: mutants-packages
	scripts/mutants/run --number $(or $(N),40)

# Puts N fixed defects back, one at a time, in a copy of the last commit; for each, runs the tests up to the first failure. Reports the
# defects that `make test` does not find. Runs continue and add up.
reverted: reverted-packages
	scripts/reverted --number $(or $(N),100)

# With WRITE=1, a harness writes its result into the table of docs/proof.md.
RESULT := $(if $(WRITE),--write docs/proof.md)

# Damages each file of a store: it is missing, empty, truncated, garbage, a directory, a pipe, unreadable or from another
# release. Every verb must report this, and the commands in the messages must repair the store.
broken: broken-packages release
	scripts/broken/run .build/release/moult --json .build/broken.json $(RESULT)

# Makes each failure that operators of many machines see: monitoring must report it, and its advice must repair it.
drills: drills-packages release
	scripts/drills/run .build/release/moult --page docs/running.md

# Attacks the built command, as docs/proof.md describes; first, planted effects show that the judges find them.
attacks: attacks-packages release
	scripts/attacks/run --self-test >/dev/null
	scripts/attacks/run .build/release/moult $(RESULT)

# Runs each flow of the proof that uses a store while apps write to its databases: no app may fail or wait for longer than five
# seconds, and no row may be lost. Then measures the longest wait of an app with up to 1.2 million rows to carry over. `make test-all`
# runs some of the flows, and the measurement with fewer rows.
crowd: crowd-packages release
	scripts/proof/crowd .build/release/moult $(RESULT)
	scripts/proof/waits .build/release/moult

# Takes the databases of more than 40 well-known programs through ten operations, and compares every row. Programs that cannot
# be installed to make their own database are skipped. ONLY=NAME runs one program.
zoo: zoo-packages release
	scripts/zoo/run $(if $(ONLY),--only $(ONLY)) --json .build/zoo.json $(RESULT) $(MOULT)

# Runs random stories of an app, its data and its updates, and compares them with an oracle that predicts where each row
# must be. `make test-all` runs 60 stories.
STORIES ?= 2000
SEED ?= 1
ledger: ledger-packages release
	scripts/ledger/run .build/release/moult --stories $(STORIES) --seed $(SEED) --save .build/ledger $(RESULT)

# Runs random histories of a feed, its publishers, thieves and stores: those that HISTORIES says in one process, with an optimized build
# of the tests (Tests/FeedTests/Model), and KILLED of them with the command, whose processes are killed. `make test-all` runs some of
# both.
HISTORIES ?= 0-5000
KILLED ?= 200
histories: histories-packages release
	MOULT_TESTS=FeedTests swift build -c release --build-tests --scratch-path .build/histories -Xswiftc -enable-testing $(DEBUG_FLAGS)
	MOULT_HISTORIES=$(HISTORIES) MOULT_CASES=all scripts/test --only FeedTests.FeedModelTests --limit 20000 \
		.build/histories/release/moultPackageTests.xctest
	scripts/histories/run .build/release/moult --histories $(KILLED) $(RESULT)

# Compares what moult says about the rows of random pairs of databases with a comparison in Python.
PAIRS ?= 3000
comparisons: comparisons-packages release
	scripts/comparisons/run .build/release/moult --pairs $(PAIRS) --seed $(SEED) $(RESULT)

# Searches for each known failure, and fails if one is gone: see scripts/harness/known-failures. Then installs 50 releases in each
# journal mode beside apps that set WAL mode when they connect, and fails if an acknowledged row is lost.
known: known-packages release
	scripts/harness/known .build/release/moult
	for mode in wal delete; do MOULT=$(abspath .build/release/moult) scripts/harness/stress 50 $$mode || exit 1; done

# Installs many releases in a row while readers and writers run, and switches a read-only release again and again.
load: load-packages
	$(BUILD_TESTS)
	MOULT_RELEASES=$${MOULT_RELEASES:-200} MOULT_FLIPS=$${MOULT_FLIPS:-2000} scripts/test --only 'LoadTests|FlipTests' --limit 7200 $(BUNDLE)

# Simulates a week of a million machines in a few minutes, with the code that stores use to choose a release; WRITE=1 writes
# figures and charts to docs/hosting.md.
simulate: simulate-packages release
	swift build $(RELEASE_FLAGS) --product FleetSimulation
	scripts/simulate .build/release/moult .build/release/FleetSimulation $(if $(MACHINES),--machines $(MACHINES)) --seed $(SEED) $(if $(WRITE),--write)

# Runs thousands of real commands against nginx and a registry on this machine, in waves.
load-servers: load-servers-packages release
	scripts/scale/load .build/release/moult $(if $(STORES),--stores $(STORES)) $(if $(WRITE),--write)

# Compares push and pull of a release with skopeo, and times requests for an unchanged feed.
bench-registry: bench-registry-packages release
	scripts/scale/registry .build/release/moult $(if $(WRITE),--write)

# Runs one store for some minutes with readers, writers, kills, a damaged feed and a full disk; the full disk needs root.
soak: soak-packages release
	scripts/soak/run --minutes $(or $(MINUTES),5) .build/release/moult

# Checks the memory use of the built command, and ratios of its run times.
limits: limits-packages release
	scripts/limits .build/release/moult

# Compares the speed of the built command with that of hand-written scripts, and of an earlier moult if BEFORE=FILE names one.
# QUICK=1 uses small data and few runs; CURVES=1 only measures how times grow with the data. bench-report runs all comparisons
# and writes docs/benchmarks.md and its charts: run it on an otherwise idle machine.
BENCH = scripts/bench/run .build/release/moult $(if $(QUICK),--quick) $(if $(CURVES),--curves) $(if $(ONLY),--only "$(ONLY)")

bench: bench-packages release
	$(BENCH) $(if $(BEFORE),--before $(BEFORE))

bench-report: bench-report-packages release
	$(BENCH) --report docs/benchmarks.md

SHARE = $(DESTDIR)$(PREFIX)/share
UNITS = $(DESTDIR)$(PREFIX)/lib/systemd/system

# The built command; set MOULT to test a different one.
MOULT ?= .build/release/moult
FETCH ?= $(dir $(MOULT))moult-fetch

install: release
	@$(MAKE) --no-print-directory put put-reader

# Installs the command, its completions, manual pages, JSON Schemas and systemd units, readable by every user whatever the
# umask. With RUN_AS=USER, the units run as that user, otherwise as root; for a single store, see docs/running.md.
put:
	install -D -m 755 $(MOULT) $(DESTDIR)$(PREFIX)/bin/moult
	mkdir -p $(DESTDIR)$(PREFIX)/libexec/moult && ln -sf ../../bin/moult $(DESTDIR)$(PREFIX)/libexec/moult/moult
	$(if $(wildcard $(FETCH)),install -D -m 755 $(FETCH) $(DESTDIR)$(PREFIX)/libexec/moult/moult-fetch)
	umask 022 && mkdir -p $(SHARE)/bash-completion/completions $(SHARE)/zsh/site-functions $(SHARE)/fish/vendor_completions.d
	umask 022 && $(MOULT) completions bash > $(SHARE)/bash-completion/completions/moult
	umask 022 && $(MOULT) completions zsh > $(SHARE)/zsh/site-functions/_moult
	umask 022 && $(MOULT) completions fish > $(SHARE)/fish/vendor_completions.d/moult.fish
	umask 022 && $(MOULT) completions man -q $(SHARE)/man
	install -D -m 644 -t $(SHARE)/moult/schema manifests/schema/*.json
	install -D -m 644 packaging/systemd/user.conf $(SHARE)/moult/user.conf
	sed 's|/usr/bin/|$(PREFIX)/bin/|' packaging/systemd/metrics.conf | install -D -m 644 /dev/stdin $(SHARE)/moult/metrics.conf
	$(if $(RUN_AS),umask 022 && mkdir -p "$(UNITS)/moult@.service.d" && sed 's/APP/$(RUN_AS)/' packaging/systemd/user.conf > "$(UNITS)/moult@.service.d/user.conf")
	umask 022 && mkdir -p $(UNITS) && for unit in service timer; do \
		sed 's|/usr/bin/|$(PREFIX)/bin/|' packaging/systemd/moult@.$$unit > $(UNITS)/moult@.$$unit || exit; done

# Installs the C library for apps: a header, a static and a shared library, and a file for pkg-config.
LIBDIR ?= $(PREFIX)/lib
put-reader:
	integrations/c/build .build/reader "$(PREFIX)" "$(LIBDIR)"
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/include integrations/c/moult_reader.h
	install -D -m 644 -t $(DESTDIR)$(LIBDIR) .build/reader/libmoult-reader.a .build/reader/libmoult-reader.so.*.*.*
	cp -P .build/reader/libmoult-reader.so .build/reader/libmoult-reader.so.[0-9] $(DESTDIR)$(LIBDIR)
	install -D -m 644 -t $(DESTDIR)$(LIBDIR)/pkgconfig .build/reader/moult-reader.pc
	@[ -n "$(DESTDIR)" ] || ldconfig 2>/dev/null || true

# Tests the C library with stores that the command has created; as root, the tests run a second time as an ordinary user. With
# GRDB_PATH, a clone of GRDB, also compiles and runs the class in docs/in-an-app.md.
reader-test: reader-test-packages release
	integrations/c/tests/run $(MOULT)
	integrations/grdb/run $(MOULT)

# Tests the Python package as a wheel, with the third-party libraries that it supports, installed from PyPI into .build.
python-test: python-test-packages release
	integrations/python/tests/run $(MOULT)

# Runs twelve programs on one store while releases are installed, with late close() calls: sqlite3, SQLAlchemy, Django, apsw, aiosqlite,
# fork, gunicorn --preload, datasette, and GRDB if GRDB_PATH is a clone of it. No acknowledged row may be lost, and no view may stay
# old. UPDATES=20 installs fewer releases.
programs: programs-packages release
	scripts/programs/run $(MOULT) $(if $(UPDATES),--updates $(UPDATES)) $(RESULT)

# Builds the library without Linux-only calls (CONTRIBUTING.md) in a separate directory, and runs the tests of the library.
# Tests of features that this build lacks are skipped; PortableBuildTests tests how this build refuses them.
PORTABLE := MoultFilesTests,StepKitTests,MoultSQLiteTests,MoultTests
portable-test: export MOULT_PORTABLE := 1
portable-test: export MOULT_TESTS := $(PORTABLE)
portable-test: portable-test-packages
	swift build --build-tests --scratch-path .build/portable $(SWIFT_FLAGS)
	scripts/test --skip "$$(grep -v '^#' scripts/portable-skip | paste -sd '|')" .build/portable/debug/moultPackageTests.xctest

# Makes a Swift package in .build/moult-plugins with the plugins and the compiled command, so that users of the package do
# not have to compile it.
artifactbundle: release
	scripts/artifact-bundle $(MOULT) .build/moult-plugins

# Makes Debian packages in `build`, with Debian's tools and a C compiler.
deb: release
	@packaging/deb/build $(MOULT) build
	@packaging/deb/build-reader build

# Installs, upgrades and purges the package in a new Debian, and updates a store there. Needs root and debootstrap.
deb-test: deb-test-packages release
	$(SUDO) packaging/deb/test $(MOULT)

# Makes the files of a release in `build`: an archive with an installer, an image for containers, the Debian packages and the Python
# wheel, with SHA256SUMS. With KEY=FILE, signs each of them: see CONTRIBUTING.md.
dist: dist-packages release
	@packaging/dist/build $(MOULT) build $(KEY)

# Installs the archive in a new Debian without a compiler, runs the README there, and runs the image. Needs root and debootstrap.
dist-test: dist-test-packages release
	$(SUDO) packaging/dist/test $(MOULT)

# Updates four hosts with real Ansible, each a network namespace with an ssh server. Needs root.
ansible-test: ansible-test-packages release
	$(SUDO) integrations/ansible/tests/run $(MOULT)
	$(SUDO) integrations/ansible/tests/follow $(MOULT)

# Runs the command in an empty chroot, and the example with containers. Needs root.
containers-test: containers-test-packages release
	$(SUDO) integrations/containers/tests/run $(MOULT)

clean:
	rm -rf .build
