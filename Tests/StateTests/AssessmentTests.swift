import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// `status`, `verify`, `plan`, `apply` and `status --deep` agree about a database, and name the command that repairs it.
@Suite struct AssessmentTests {
    let scratch: Scratch
    let releases: CopiedStore.Releases
    let store: CopiedStore

    init() throws {
        scratch = try Scratch()
        releases = try CopiedStore.Releases()
        store = try CopiedStore.make(.idle, at: scratch.path("store"), releases)
    }

    private func path(_ name: String) -> String { "\(store.path)/\(name).db" }

    private func line(_ name: String, of output: String) -> String {
        output.split(separator: "\n").first { $0.split(separator: " ").dropFirst().first == Substring(name) }
            .map(String.init) ?? ""
    }

    enum Damage: String, CaseIterable {
        case empty, text, directory, pipe, cut

        func make(_ path: String) throws {
            let bytes = try Files.read(path, limit: 1 << 24) ?? []
            try Files.remove(path)
            switch self {
            case .empty: try Files.writeNew([], to: path)
            case .text: try Files.writeNew(Array("these are no rows\n".utf8), to: path)
            case .directory: try Files.ensureDirectory(path)
            case .pipe: try Shell.must(["mkfifo", path])
            case .cut: try Files.writeNew(Array(bytes.prefix(bytes.count / 2)), to: path)
            }
        }
    }

    @Test(arguments: Damage.allCases)
    func `every verb reports a damaged user database, and none hangs`(_ damage: Damage) throws {
        try damage.make(path("diary"))
        let status = try store.moult(["status"])
        #expect(line("diary", of: status.output).contains("✗"), "\(status.output)")
        #expect(status.output.contains("moult reset diary --set-user-data-aside --store "))
        #expect(try store.moult(["status", "--nagios"]).status == 2)
        #expect(try store.moult(["status", "--prometheus"]).output.contains(#"database="diary",kind="user"} 0"#))
        for verify in [["verify"], ["verify", "--deep"], ["verify", "diary"]] {
            #expect(try store.moult(verify).status == 1)
        }
        #expect(try store.moult(["verify", "app"]).status == 0)
        #expect(try store.moult(["status", "--deep"]).output.contains("diary.db"))
        for release in 1...2 {
            let refused = try store.moult(["apply", releases.manifest(release)])
            #expect(refused.status == 3, "\(refused)")
            #expect(refused.errors.contains("diary.db"))
        }
        try store.must("reset", "diary", "--set-user-data-aside")
        #expect(try store.moult(["verify", "--deep"]).status == 0)
    }

    /// `status` must not show a tick for a database that SQLite calls damaged.
    @Test func `a database with a damaged page is not shown as sound`() throws {
        try Shell.must([
            "sqlite3", path("diary"),
            "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) INSERT INTO note SELECT 'note ' || i FROM n",
        ])
        let file = try Descriptor(path("diary"), .write)
        try [UInt8](repeating: 0xFF, count: 3000).withUnsafeBytes { try file.write($0, at: 3 * 4096) }
        try file.close()
        #expect(try Shell.run(["sqlite3", path("diary"), "PRAGMA quick_check"]).output != "ok\n")
        #expect(try !line("diary", of: store.moult(["status"]).output).contains("✓"))
        #expect(try store.moult(["verify"]).status == 1)
        #expect(try store.moult(["verify", "--deep"]).status == 1)
    }

    @Test func `status reports a file in WAL mode that has lost its last page`() throws {
        try Shell.must([
            "sqlite3", path("diary"),
            "PRAGMA journal_mode=WAL; WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) INSERT INTO note SELECT 'note ' || i FROM n",
        ])
        #expect(try Files.facts(path("diary") + "-wal") == nil)
        #expect(try !line("diary", of: store.moult(["status"]).output).contains("✗"))
        try Shell.must(["truncate", "-s", "-4096", path("diary")])
        #expect(try line("diary", of: store.moult(["status"]).output).contains("✗"))
        #expect(try store.moult(["apply", releases.manifest(2)]).status == 3)
    }

    @Test func `status shows a tick for a database only if it was read and has not changed since`() throws {
        try store.must("apply", releases.manifest(2))
        #expect(try line("app", of: store.moult(["status"]).output).contains("✓"))
        try Shell.must(["sqlite3", path("app"), "INSERT INTO item VALUES('LATER', 1)"])
        let status = try store.moult(["status"]).output
        #expect(!line("app", of: status).contains("✓"))
        #expect(line("app", of: status).contains("moult verify app"))
        let json = try store.moult(["status", "--json"]).output
        let app = try JSON(parsing: Array(json.utf8), source: "status")["databases"]?.array?
            .first { $0["name"]?.string == "app" }
        #expect(app?["checked"]?.string == "glance")
    }

    @Test func `a file of an older release under a newer release is reported and replaced`() throws {
        let old = scratch.path("old.db")
        try Shell.must(["cp", path("app"), old])
        try store.must("apply", releases.manifest(2))
        try Shell.must(["cp", old, path("app")])
        #expect(try store.moult(["verify"]).output.contains("its content is from release 1.0.0"))
        #expect(try store.moult(["status", "--nagios"]).status == 2)
        #expect(try store.moult(["plan", releases.manifest(2)]).status == 2)
        try store.must("apply", releases.manifest(2))
        #expect(
            try Shell.must(["sqlite3", path("app"), "SELECT name FROM item ORDER BY 1"]) == "MINE\nSHIPPED2\n")
        #expect(try store.moult(["verify", "--deep"]).status == 0)
    }

    @Test func `apply refuses a release if the user database lacks a column of its schema`() throws {
        try Shell.must(["sqlite3", path("diary"), "ALTER TABLE note RENAME COLUMN t TO other"])
        for release in 1...2 {
            let refused = try store.moult(["apply", releases.manifest(release)])
            #expect(refused.status == 3)
            #expect(refused.errors.contains(#"column "t" is missing"#), "\(refused.errors)")
        }
        #expect(try line("diary", of: store.moult(["status"]).output).contains("✗"))
        // The app may add its own tables and columns.
        try Shell.must([
            "sqlite3", path("diary"),
            "ALTER TABLE note RENAME COLUMN other TO t; ALTER TABLE note ADD COLUMN more;"
                + "CREATE TABLE own(x); CREATE INDEX i ON note(more)",
        ])
        try store.must("apply", releases.manifest(2))
    }

    enum Record: String, CaseIterable {
        case manifest = "manifest.json"
        case seal = "seal.json"
        case template = "diary.db"
        case sealed = "food.db"
        case directory = ""
    }

    @Test(.tags(.thorough), arguments: Record.allCases, [nil] + Damage.allCases)
    func `applying the installed release repairs its generation`(_ record: Record, _ damage: Damage?) throws {
        let name = try #require(try Files.target(ofLink: "\(store.path)/.moult/current"))
        let generation = "\(store.path)/.moult/\(name)"
        try Shell.must(["chmod", "-R", "u+w", generation])
        let path = record == .directory ? generation : "\(generation)/\(record.rawValue)"
        if record == .directory {
            try Files.removeTree(path)
            if let damage, damage != .cut { try damage.make(path) }
        } else if let damage {
            try damage.make(path)
        } else {
            try Files.remove(path)
        }
        let look = try store.moult(["verify"])
        #expect(look.status == 1)
        #expect((look.output + look.errors).contains("moult apply RELEASE"), "\(look)")
        try store.must("apply", releases.manifest(1))
        #expect(try store.moult(["verify", "--deep"]).status == 0)
        #expect(try Shell.must(["sqlite3", self.path("diary"), "SELECT t FROM note"]) == "DIARY\n")
        #expect(try store.moult(["apply", releases.manifest(1)]).output.contains("nothing to do"))
    }

    @Test(arguments: [nil] + Damage.allCases)
    func `recover recreates the pointer to the installed generation`(_ damage: Damage?) throws {
        try store.must("apply", releases.manifest(2))
        let pointer = "\(store.path)/.moult/current"
        let target = try Files.target(ofLink: pointer)
        try Files.remove(pointer)
        if let damage, damage != .cut { try damage.make(pointer) }
        let status = try store.moult(["status"])
        #expect(status.status == 1)
        #expect(status.errors.contains("moult recover --store "), "\(status.errors)")
        try store.must("recover")
        #expect(try Files.target(ofLink: pointer) == target)
        #expect(try store.moult(["verify", "--deep"]).status == 0)
    }

    @Test func `recover recreates a pointer to a release that was never installed`() throws {
        let pointer = "\(store.path)/.moult/current"
        let target = try Files.target(ofLink: pointer)
        try Files.remove(pointer)
        try Files.symlink(to: "generations/9.9.9+00000000", at: pointer)
        for words in [["status"], ["verify"], ["apply", releases.manifest(1)], ["status", "--deep"]] {
            let look = try store.moult(words)
            #expect(look.status == 1)
            #expect((look.errors + look.output).contains("moult recover --store "), "\(words): \(look)")
        }
        let recover = try store.moult(["recover"])
        #expect(recover.status == 0 && recover.output == "", "\(recover)")
        #expect(recover.errors.contains("\(pointer) was recreated"))
        #expect(try Files.target(ofLink: pointer) == target)
        #expect(try store.moult(["verify", "--deep"]).status == 0)
    }

    @Test func `the next command that writes records the check of a changed database`() throws {
        try Shell.must(["sqlite3", path("diary"), "INSERT INTO note VALUES('MORE')"])
        let opens = { () throws -> Int in
            let log = scratch.path("log")
            let ended = try Shell.run([
                "strace", "-f", "-qq", "-o", log, "-e", "trace=openat", BuiltMoult.path(), "apply",
                releases.manifest(1), "--store", store.path,
            ])
            #expect(ended.output.contains("nothing to do"))
            let text = String(decoding: try Files.read(log, limit: 1 << 24) ?? [], as: UTF8.self)
            return text.split(separator: "\n").count { $0.contains("/diary.db\"") }
        }
        #expect(try opens() > 0)
        #expect(try opens() == 0)
    }

    /// No setting makes the repair depend on the damaged manifest.
    @Test(arguments: ["", #""maxAge": 1000000, "onWithdrawn": "rollback", "window": "00:00-00:01","#])
    func `apply restores damaged files from a feed`(settings: String) throws {
        let feed = scratch.path("feed")
        try BuiltMoult.must(["publish", "--allow-unsigned", feed, releases.manifest(1)])
        let follower = CopiedStore(path: scratch.path("follower"))
        try Shell.must([
            BuiltMoult.path(), "init", "-q", follower.path, "--product", "local.copies", "--feed", "\(feed)/feed.json",
        ])
        try Shell.must(["sed", "-i", "0,/{/s//{ \(settings)/", "\(follower.path)/moult.json"])
        try follower.must("apply")
        let generation =
            try "\(follower.path)/.moult/" + (Files.target(ofLink: "\(follower.path)/.moult/current") ?? "")
        for damage in ["\(follower.path)/food.db", "\(generation)/food.db", "\(generation)/manifest.json"] {
            try Shell.must(["chmod", "-R", "u+w", generation])
            try Files.remove(damage)
            #expect(try follower.moult(["status", "--nagios"]).status >= 2)
            try follower.must("apply")
            #expect(try follower.moult(["verify", "--deep"]).status == 0)
        }
        #expect(try follower.moult(["apply"]).output.hasPrefix("no newer release"))
    }

    @Test func `applying an in-place release from another directory uses the files there`() throws {
        let first = try scratch.directory("first")
        try Files.writeNew(Array("CREATE TABLE t(x); INSERT INTO t VALUES('WORD');".utf8), to: "\(first)/words.sql")
        let draft: JSON = [
            "manifest": 1, "product": "local.place", "version": "1.0.0", "sequence": 1,
            "databases": ["words": ["kind": "reference", "place": "in-place", "build": ["script": "words.sql"]]],
        ]
        try Files.writeNew(Array(draft.pretty.utf8), to: "\(first)/draft.json")
        try BuiltMoult.must(["pack", "-q", "--allow-dirty", "\(first)/draft.json", "-o", first])
        let second = scratch.path("second")
        try Shell.must(["cp", "-a", first, second])
        let placed = CopiedStore(path: scratch.path("placed"))
        try BuiltMoult.must(["init", "-q", placed.path, "--product", "local.place"])
        try placed.must("apply", "\(first)/place-1.0.0.json")
        try placed.must("apply", "\(second)/place-1.0.0.json")
        #expect(try Shell.must(["readlink", "-f", "\(placed.path)/words.db"]) == "\(second)/words.db\n")
        #expect(try placed.moult(["apply", "\(second)/place-1.0.0.json"]).output.contains("nothing to do"))
        try Files.removeTree(second)
        let lost = try placed.moult(["sql", "SELECT * FROM words.t"])
        #expect(lost.status == 1)
        #expect(lost.errors.contains("moult apply RELEASE --store "), "\(lost.errors)")
        try placed.must("apply", "\(first)/place-1.0.0.json")
        #expect(try placed.moult(["sql", "SELECT * FROM words.t"]).output == "x\nWORD\n")
    }

    @Test(arguments: Damage.allCases)
    func `applying the installed release recreates a damaged cache`(_ damage: Damage) throws {
        let cached = CopiedStore(path: scratch.path("cached"))
        let work = try scratch.directory("draft")
        try Files.writeNew(Array("CREATE TABLE thumb(x);".utf8), to: "\(work)/thumbs.sql")
        let draft: JSON = [
            "manifest": 1, "product": "local.cache", "version": "1.0.0", "sequence": 1,
            "databases": ["thumbs": ["kind": "cache", "build": ["script": "thumbs.sql"]]],
        ]
        try Files.writeNew(Array(draft.pretty.utf8), to: "\(work)/draft.json")
        try BuiltMoult.must(["pack", "-q", "--allow-dirty", "\(work)/draft.json", "-o", work])
        try BuiltMoult.must(["init", "-q", cached.path, "--product", "local.cache"])
        try cached.must("apply", "\(work)/cache-1.0.0.json")
        try damage.make("\(cached.path)/thumbs.db")
        var verdicts = [
            "thumbs: To create it again": try cached.moult(["status"]),
            "To create it again": try cached.moult(["verify"]),
            "  To create it again": try cached.moult(["status", "--deep"]),
            "Repair it with": try Shell.run([
                BuiltMoult.path(), "cache", "\(cached.path)/thumbs.db", "--schema", "\(work)/thumbs.sql",
            ]),
        ]
        // SQLite opens an empty file.
        if damage != .empty {
            verdicts[" To create it again"] = try cached.moult(["sql", "SELECT 1"])
        }
        for (words, said) in verdicts {
            #expect((said.output + said.errors).contains("\(words): moult reset thumbs --store "), "\(said)")
        }
        try cached.must("apply", "\(work)/cache-1.0.0.json")
        // An empty file has no content to keep.
        #expect(try Files.list("\(cached.path)/.moult/quarantine").count == (damage == .empty ? 0 : 1))
        #expect(try cached.moult(["verify", "--deep"]).status == 0)
        #expect(try cached.moult(["apply", "\(work)/cache-1.0.0.json"]).output.contains("nothing to do"))
    }

    @Test func `a sound store can be inspected`() throws {
        let ended = try BuiltMoult.run(["inspect", store.path])
        #expect(ended.status == 0, "\(ended.output)")
    }
}
