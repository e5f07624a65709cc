import MoultBasics
import MoultFiles
import MoultTrust
import TestSupport
import Testing

/// Malicious databases in a complete update: they are refused with the reason, and the store does not change.
@Suite(.processes) struct HostileDatabaseTests {
    /// A store with release 1.0.0, and a release 2.0.0 whose database a script damages before the manifest gets its
    /// digest.
    private struct Case {
        let bench: Bench

        init(kind: String = "reference", spoil: String = ":", sql: String = "", query: String? = nil) throws {
            bench = try Bench()
            let maker = try ReleaseMaker(in: bench.path("rel"))
            let table = "CREATE TABLE food(id INTEGER PRIMARY KEY, name TEXT); INSERT INTO food VALUES(1, 'rye');"
            func source(_ sql: String) -> ReleaseMaker.Source {
                kind == "shared"
                    ? .shared("food", sql, more: []) : kind == "user" ? .user("food", sql) : .reference("food", sql)
            }
            try maker.make("1.0.0", sequence: 1, [source(table)])
            let checks: [JSON.Member] =
                query.map { [.init("checks", [["on": "food", "sql": .string($0), "expect": "= 1"]])] } ?? []
            let path = try maker.make("2.0.0", sequence: 2, [source(table + sql)], format: .tar, top: checks)
            try bench.must("cd rel/2.0.0.work; DB=food.db; \(spoil); tar -cf ../test-2.0.0.tar food.db")
            var manifest = try JSON(parsing: try Files.read(path, limit: 1 << 20) ?? [], source: "m")
            func facts(_ name: String) throws -> (JSON, JSON) {
                let file = bench.path("rel/\(name)")
                return (.size(try Files.facts(file)?.size ?? 0), .string(try SHA256.digest(ofFileAt: file).hex))
            }
            let (size, digest) = try facts("2.0.0.work/food.db")
            let (bundleSize, bundleDigest) = try facts("test-2.0.0.tar")
            let food = manifest["databases"]?["food"]?.setting("size", to: size).setting("sha256", to: digest)
            manifest = manifest.setting("databases", to: ["food": food ?? .null])
            manifest = manifest.setting(
                "bundle", to: ["file": "test-2.0.0.tar", "size": bundleSize, "sha256": bundleDigest])
            try Files.replace(path, with: Array(manifest.pretty.utf8))
            try bench.must("moult init --product org.example.test -q")
        }

        /// Runs the update to 2.0.0, which must fail and leave everything unchanged, and returns the error.
        func refusal(through wrapper: String = "", status: Int32 = 1) throws -> String {
            let history: Set = [".moult/history.jsonl", ".moult/lock", ".moult/transactions"]
            let before = try Tree(bench.path("store"), times: false, skipping: history)
            let ended = try bench.run("\(wrapper) moult apply -q rel/test-2.0.0.json")
            #expect(ended.status == status, "\(ended.errors)")
            #expect(try Tree(bench.path("store"), times: false, skipping: history) == before)
            #expect(try Files.list(bench.path("store/.moult/transactions")) == [])
            return ended.errors
        }
    }

    /// The kind of a database determines which step would open it first, but a damaged file of any kind is refused.
    @Test(arguments: ["reference", "shared", "user"], [true, false])
    func `a damaged file is never installed`(kind: String, isUpdate: Bool) throws {
        for spoil in [
            ": > $DB", "printf x > $DB", "echo 'PK no database' > $DB", "truncate -s 5000 $DB",
            "dd if=/dev/urandom of=$DB bs=1 seek=100 count=4000 conv=notrunc status=none",
            "printf '\\377\\377' | dd of=$DB bs=1 seek=4100 conv=notrunc status=none",
        ] {
            let hostile = try Case(kind: kind, spoil: spoil)
            // The release would not replace an existing user database, but its file is checked anyway.
            if isUpdate { try hostile.bench.must("moult apply -q rel/test-1.0.0.json") }
            let why = try hostile.refusal()
            let beginnings = ["is not a valid database", "does not match the manifest", "fails verification"].map {
                "moult: error: food.db \($0)"
            }
            #expect(beginnings.contains { why.hasPrefix($0) }, "\(kind), \(spoil): \(why)")
        }
    }

    /// The checking process crashes, as it would because of a bug in SQLite: a signal ends it when it starts to confine itself.
    @Test(arguments: ["SEGV", "ABRT", "KILL"])
    func `a release is refused if SQLite crashes while checking it`(signal: String) throws {
        let hostile = try Case()
        try hostile.bench.must("moult apply -q rel/test-1.0.0.json")
        let why = try hostile.refusal(
            through: "strace -f -qq -o trace -e trace=prctl -e inject=prctl:signal=\(signal)", status: 3)
        let reason =
            signal == "KILL"
            ? "the check ended with SIGKILL, probably because memory ran out" : "the check ended with SIG\(signal)"
        #expect(
            why == """
                moult: error: food.db cannot be checked: \(reason)
                  Nothing was changed. Publish the release again from an undamaged file.

                """)
    }

    @Test func `a golden query that loads code is refused`() throws {
        let hostile = try Case(
            sql: "CREATE VIEW harm AS SELECT load_extension('/tmp/harm.so') AS x;", query: "SELECT x FROM harm")
        try hostile.bench.must("moult apply -q rel/test-1.0.0.json")
        let why = try hostile.refusal(status: 3)
        #expect(why.contains("unsafe use of load_extension()"), "\(why)")
    }

    /// The process that holds the store lock does not open a new file before the file has passed its check.
    @Test func `only the confined process opens a new database before its check`() throws {
        let hostile = try Case(
            kind: "shared", spoil: "printf '\\377\\377' | dd of=$DB bs=1 seek=4100 conv=notrunc status=none")
        try hostile.bench.must("moult apply -q rel/test-1.0.0.json")
        _ = try hostile.refusal(through: "strace -f -qq -o trace -e trace=openat,openat2,prctl")
        let lines = try hostile.bench.must("cat trace").split(separator: "\n").map { String($0) }
        // Two processes drop their privileges: the archive reader, which cannot open files, and the checking process.
        let examiners = Set(
            lines.filter { $0.contains("PR_SET_NO_NEW_PRIVS") }.compactMap { $0.split(separator: " ").first })
        #expect(examiners.count == 2)
        // Opens with O_EXCL are left out, because they belong to unpacking.
        let opened = lines.filter { $0.contains("/food.db\"") && $0.contains("transactions") && !$0.contains("O_EXCL") }
        #expect(!opened.isEmpty)
        for line in opened where line.contains("O_RDWR") || line.contains("O_RDONLY") {
            let owner = line.split(separator: " ").first ?? ""
            #expect(examiners.contains(owner), "\(line)")
        }
    }
}
