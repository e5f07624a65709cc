import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// Invalid input, and the exact error messages: what failed, why, and the next step. The store does not change.
@Suite(.tags(.thorough)) struct WrongInputTests {
    struct Case: CustomTestStringConvertible {
        var name: String
        /// The command that prepares the fault.
        var prepare: String
        var line: String
        var status: Int32
        /// `{dir}` is replaced by the scratch directory.
        var message: String
        /// When moult detects the fault. If moult detects it while the update prepares, the plan was already printed, and the
        /// history contains the attempt.
        var found = Found.planning
        var testDescription: String { name }

        enum Found { case planning, preparing }

        init(
            _ name: String, _ prepare: String, _ line: String, _ status: Int32, found: Found = .planning,
            _ message: String
        ) {
            (self.name, self.prepare, self.line, self.status, self.message) = (name, prepare, line, status, message)
            self.found = found
        }

        init(_ name: String, _ line: String, _ status: Int32, _ message: String) {
            self.init(name, ":", line, status, message)
        }
    }

    /// 1.0.0 is installed, and the fault is in 2.0.0.
    static let cases = [
        Case(
            "missing manifest", "moult apply rel/none.json", 1,
            """
            no release at rel/none.json: no such file
              Specify the manifest of a release, the directory of a feed, or a URL that starts with https:// or oci://.
            """),
        Case(
            "missing bundle", "rm rel/test-2.0.0.tar.zst", "moult apply rel/test-2.0.0.json", 1,
            """
            the bundle {dir}/rel/test-2.0.0.tar.zst is missing: the manifest refers to this file, but it does not exist
              Put the bundle next to its manifest.
            """),
        Case(
            "bundle that was cut off", "truncate -s 200 rel/test-2.0.0.tar.zst", "moult apply rel/test-2.0.0.json", 1,
            """
            the bundle {dir}/rel/test-2.0.0.tar.zst does not match its manifest: the file has 200 bytes, and the manifest says {bundle}
              Copy or download it again: it may be truncated.
            """),
        Case(
            "bundle with a wrong byte",
            // Only bundles of the zstd program end with a checksum.
            """
            zstd -qd rel/test-2.0.0.tar.zst -o w/old.tar; zstd -qf w/old.tar -o rel/test-2.0.0.tar.zst; seal
            truncate -s -1 rel/test-2.0.0.tar.zst; printf X >> rel/test-2.0.0.tar.zst
            """,
            "moult apply rel/test-2.0.0.json", 1, found: .preparing,
            """
            cannot unpack {dir}/rel/test-2.0.0.tar.zst: libarchive says: Zstd decompression failed: Restored data doesn't match checksum
              Download the archive again, or pack it again.
            """),
        Case(
            "not a database", "head -c 8192 /dev/zero > w/food.db; pack food.db user.db; seal food",
            "moult apply rel/test-2.0.0.json", 1, found: .preparing,
            """
            food.db is not a valid database: it does not start with the header of a SQLite database
              Publish the release again from an undamaged file.
            """),
        Case(
            "other data", "sqlite3 w/food.db 'UPDATE food SET name = 1'; pack food.db user.db; seal",
            "moult apply rel/test-2.0.0.json", 1, found: .preparing,
            """
            food.db in {dir}/rel/test-2.0.0.tar.zst does not match the manifest: its SHA-256 is {digest}..., and the manifest says {sealed}...
              Use the manifest and the bundle of the same release.
            """),
        Case(
            "missing member", "pack food.db; seal", "moult apply rel/test-2.0.0.json", 1, found: .preparing,
            """
            cannot unpack {dir}/rel/test-2.0.0.tar.zst: it does not contain the declared "user.db"
              Download the archive again, or pack it again.
            """),
        Case(
            "extra member", "cp w/user.db w/more.db; pack food.db user.db more.db; seal",
            "moult apply rel/test-2.0.0.json", 1, found: .preparing,
            """
            cannot unpack {dir}/rel/test-2.0.0.tar.zst: it contains "more.db", which is not declared
              Download the archive again, or pack it again.
            """),
        Case(
            "wrong identity", "sqlite3 w/food.db 'PRAGMA user_version = 7'; pack food.db user.db; seal food",
            "sed -i 's/\"kind\": \"reference\"/&, \"identity\": {\"userVersion\": 8}/' rel/test-2.0.0.json; moult apply rel/test-2.0.0.json",
            1, found: .preparing,
            """
            food.db does not match the manifest: its user_version is 7, and the manifest says 8
              Publish the release again with the correct file.
            """),
        Case(
            "wrong schema",
            "sed -i 's/\"kind\": \"reference\"/&, \"identity\": {\"schema\": \"sha256:'$(printf '0%.0s' {1..64})'\"}/' rel/test-2.0.0.json",
            "moult apply rel/test-2.0.0.json", 1, found: .preparing,
            """
            food.db does not match the manifest: its schema does not match the manifest (sha256:{schema}..., not sha256:00000000...)
              Publish the release again with the correct file.
            """),
        Case(
            "wrong digest",
            "sed -i '/\"bundle\"/,/}/s/\"sha256\": \"[0-9a-f]*\"/\"sha256\": \"'$(printf '0%.0s' {1..64})'\"/' rel/test-2.0.0.json",
            "moult apply rel/test-2.0.0.json", 1, found: .preparing,
            """
            the bundle {dir}/rel/test-2.0.0.tar.zst does not match its manifest: its SHA-256 is {archive}..., and the manifest says 00000000...
              Copy or download it again.
            """),
        Case(
            "manifest that is not JSON", "echo '{\"manifest\": 1,}' > rel/test-2.0.0.json",
            "moult apply rel/test-2.0.0.json", 1,
            """
            rel/test-2.0.0.json is not valid JSON: line 1, column 16: a comma before '}' is not allowed in JSON
              Specify the manifest of a release. `moult pack` creates it from a draft, next to the bundle.
            """),
        Case(
            "bundle instead of the manifest", "moult apply rel/test-2.0.0.tar.zst", 1,
            """
            rel/test-2.0.0.tar.zst is an archive (data compressed with zstd), not the manifest of a release
              Install the release from its manifest: moult apply rel/test-2.0.0.json
            """),
        Case(
            "large bundle instead of the manifest", "truncate -s 2M rel/test-2.0.0.tar.zst",
            "moult plan rel/test-2.0.0.tar.zst", 1,
            """
            rel/test-2.0.0.tar.zst is an archive (data compressed with zstd), not the manifest of a release
              Install the release from its manifest: moult apply rel/test-2.0.0.json
            """),
        Case(
            "unknown manifest format", "sed -i 's/\"manifest\": 1/\"manifest\": 9/' rel/test-2.0.0.json",
            "moult apply rel/test-2.0.0.json", 1,
            """
            rel/test-2.0.0.json: manifest is format 9, and this version of moult reads format 1
              Install a newer moult.
            """),
        Case(
            "other product", "sed -i 's/org.example.test/org.example.other/' rel/test-2.0.0.json",
            "moult apply rel/test-2.0.0.json", 3,
            """
            rel/test-2.0.0.json is a release of org.example.other: the store {dir}/store holds org.example.test
              Use a store for that product.
            """),
        Case(
            "downgrade", "moult apply -q rel/test-2.0.0.json", "moult apply rel/test-1.0.0.json", 3,
            """
            release 1.0.0 is older than the installed 2.0.0: this store accepts only newer releases
              To install it anyway: moult apply rel/test-1.0.0.json --allow-downgrade. To roll back instead: moult rollback
            """),
        Case(
            "not a store", "moult status --store rel", 1,
            """
            {dir}/rel is not a store: it has no moult.json
              Create one with: moult init {dir}/rel --product NAME, or with the first release: moult apply --create RELEASE --store rel
            """),
        Case(
            "no store here", "cd rel; moult status", 1,
            """
            no store is specified, and this directory is not a store: neither ./moult.json nor ./store/moult.json exists
              Specify one with --store DIR or MOULT_STORE. To create one with a release: moult apply --create RELEASE
            """),
        Case(
            "store of another product", "moult init --product org.example.other", 3,
            """
            {dir}/store is already a store with different settings: {dir}/store/moult.json has a different value for "product": "org.example.test"
              Edit that file, or use another directory.
            """),
        Case(
            "a database instead of a release", "sqlite3 a.db 'CREATE TABLE t(x)'", "moult apply a.db", 1,
            """
            a.db is a database, not the manifest of a release
              Pack a release from it: moult pack a.db
            """),
        Case(
            "a file of a store is not replaced", "cp store/food.db new.db", "moult replace store/food.db new.db", 3,
            """
            store/food.db cannot be replaced: it belongs to the store {dir}/store, and only releases of the store may replace it
              Install a release with: moult apply RELEASE --store {dir}/store
            """),
        Case(
            "store below a file", "echo x > a; moult init a/b --product org.example.test", 1,
            """
            cannot create the directory {dir}/a/b: Not a directory
            """),
        Case(
            "wrong settings", "sed -i 's/\"newer\"/\"never\"/' store/moult.json", "moult apply rel/test-2.0.0.json", 1,
            """
            {dir}/store/moult.json: follow must be one of "newer", "match", but is "never"
              Did you mean "newer"?
            """),
        Case(
            "nothing to go back to", "moult rollback", 3,
            """
            nothing to roll back to: {generation} is the only generation of {dir}/store
              Install an older release: moult apply RELEASE --allow-downgrade
            """),
        Case(
            "unknown generation", "moult apply -q rel/test-2.0.0.json", "moult rollback --to 9.9.9", 3,
            """
            generation 9.9.9 is not kept: kept generations: {generation}
              To roll back to it: moult rollback --to {generation}
            """),
        Case(
            "missing plan", "moult apply --plan p", 1,
            """
            no plan at p: no such file
              Create one with: moult plan --output FILE RELEASE
            """),
        Case(
            "something else than a plan", "moult apply --plan rel/test-1.0.0.json", 3,
            """
            rel/test-1.0.0.json is not a plan: format is missing
              Create a new plan with: moult plan --output FILE RELEASE
            """),
        Case(
            "app that is too old", "sed -i 's/\"sequence\"/\"requires\": {\"app\": \">=3.2\"}, &/' rel/test-2.0.0.json",
            "moult apply rel/test-2.0.0.json --app 3.1.0", 3,
            """
            release 2.0.0 requires app >=3.2: the app is 3.1.0
              Install a matching version of the app first.
            """),
        Case(
            "app version that is unknown",
            "sed -i 's/\"sequence\"/\"requires\": {\"app\": \">=3.2\"}, &/' rel/test-2.0.0.json",
            "moult apply rel/test-2.0.0.json", 3,
            """
            release 2.0.0 requires app >=3.2: the store does not know the version of the app
              Specify it with --app VERSION, or set "app" in moult.json.
            """),
    ]

    /// `pack FILE...` recreates the bundle of 2.0.0 from files in `w`; `seal NAME...` writes its digest and those of
    /// databases to the manifest.
    private static let tools = """
        cp -r rel/2.0.0.work w
        pack() { tar -C w -cf w/new.tar "$@" && zstd -qf w/new.tar -o rel/test-2.0.0.tar.zst; }
        seal() { python3 -c '
        import hashlib, json, os, sys
        def facts(path): return {"size": os.path.getsize(path), "sha256": hashlib.sha256(open(path, "rb").read()).hexdigest()}
        manifest = json.load(open("rel/test-2.0.0.json"))
        manifest["bundle"].update(facts("rel/test-2.0.0.tar.zst"))
        for name in sys.argv[1:]: manifest["databases"][name].update(facts(f"w/{name}.db"))
        json.dump(manifest, open("rel/test-2.0.0.json", "w"), indent=2)' "$@"; }

        """

    private func expect(_ wrong: Case, in world: VerbWorld, _ run: (status: Int32, out: String, err: String)) throws {
        #expect(run.status == wrong.status)
        switch wrong.found {
        case .planning: #expect(run.out == "")
        case .preparing: #expect(run.out.hasPrefix("test 1.0.0 -> 2.0.0 ") && run.out.hasSuffix(", not signed)\n\n"))
        }
        var message = wrong.message.replacing("{dir}", with: world.scratch.path)
            .replacing("{generation}", with: try world.generation(world.first))
        if message.contains("{bundle}") || message.contains("{sealed}") {
            let manifest = try JSON(parsing: world.scratch.text(world.second), source: world.second)
            let sealed = manifest["databases"]?["food"]?["sha256"]?.string ?? ""
            message = message.replacing("{bundle}", with: "\(manifest["bundle"]?["size"]?.integer ?? 0)")
                .replacing("{sealed}", with: sealed.prefix(8))
                .replacing("{digest}", with: try world.must("sha256sum w/food.db | head -c 8"))
        }
        if message.contains("{schema}") {
            let inspected = try world.must("moult inspect --json rel/2.0.0.work/food.db | grep -o 'sha256:[0-9a-f]*'")
            message = message.replacing("{schema}", with: inspected.dropFirst(7).prefix(8))
        }
        if message.contains("{archive}") {
            let sum = try world.must("sha256sum rel/test-2.0.0.tar.zst | head -c 8")
            message = message.replacing("{archive}", with: sum)
        }
        #expect(run.err == "moult: error: \(message)\n")
    }

    @Test(arguments: cases) func `wrong input is refused with advice`(_ wrong: Case) throws {
        let world = try VerbWorld()
        try world.install(world.first)
        try world.must(Self.tools + wrong.prepare)
        func tree() throws -> Tree {
            switch wrong.found {
            case .planning: try world.tree
            case .preparing: try Tree(world.store, times: false, skipping: [".moult/history.jsonl"])
            }
        }
        let before = try tree()
        try expect(wrong, in: world, world.run(wrong.line))
        #expect(try tree() == before)
    }

    /// Root may do anything, so this needs another user.
    @Test(
        .enabled(if: getuid() == 0),
        arguments: [
            Case(
                "apply", "moult apply rel/test-2.0.0.json", 1,
                """
                this user cannot change the store {dir}/store: cannot open {dir}/store/.moult/lock: Permission denied
                  Run the command as the user who owns the store.
                """),
            Case(
                "hold", "moult hold --reason x", 1,
                """
                this user cannot change the store {dir}/store: cannot open {dir}/store/.moult/lock: Permission denied
                  Run the command as the user who owns the store.
                """),
            Case(
                "init", "moult init other --product a.b", 1,
                """
                cannot create the directory {dir}/other: Permission denied
                  Run the command as user root, who owns {dir}.
                """),
            Case(
                "locked away", "chmod 700 store", "moult status", 1,
                """
                cannot open {dir}/store/moult.json: Permission denied
                  Run the command as user root, who owns {dir}/store.
                """),
        ])
    func `an error explains a missing permission`(_ wrong: Case) throws {
        let world = try VerbWorld()
        try world.install(world.first)
        try world.must(
            "chmod 755 .; mkdir bin; cp \(try BuiltMoult.directory())/moult bin; chmod 755 bin bin/moult; \(wrong.prepare)"
        )
        let other = "setpriv --reuid 65534 --regid 65534 --clear-groups bin/"
        try expect(wrong, in: world, world.run(other + wrong.line))
    }

    /// Any user with read permission may read the store.
    @Test(
        .enabled(if: getuid() == 0),
        arguments: [
            "status", "history", "verify --deep", "plan rel/test-1.0.0.json", "sql 'SELECT * FROM food.food'", "attach",
        ])
    func `read-only verbs require no write permission`(_ line: String) throws {
        let world = try VerbWorld()
        try world.install(world.first)
        try world.must("chmod 755 .; mkdir bin; cp \(try BuiltMoult.directory())/moult bin; chmod 755 bin bin/moult")
        let run = try world.run("setpriv --reuid 65534 --regid 65534 --clear-groups bin/moult \(line)")
        #expect(run.status == 0)
        #expect(run.err == "")
        #expect(run.out == (try world.run("moult \(line)").out))
    }
}
