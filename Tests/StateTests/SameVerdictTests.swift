import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Every command reports the same faults of a store, and advises a command that repairs them.
@Suite(.tags(.thorough)) struct SameVerdictTests {
    let scratch: Scratch
    let releases: CopiedStore.Releases
    let store: CopiedStore

    init() throws {
        scratch = try Scratch()
        releases = try CopiedStore.Releases()
        store = try CopiedStore.make(.twoGenerations, at: scratch.path("store"), releases)
    }

    private var generation: String {
        get throws {
            try "\(store.path)/.moult/" + (Files.target(ofLink: "\(store.path)/.moult/current") ?? "")
        }
    }

    /// Runs the command at the end of the line that contains `words`.
    private func runAdvice(_ words: String, in output: String) throws {
        let start = try #require(output.firstRange(of: words), "\(output)").upperBound
        let command = String(output[start...].prefix { $0 != "\n" })
            .replacing("moult ", with: "\(try BuiltMoult.path()) ")
            .replacing("RELEASE", with: releases.manifest(2))
        try Shell.must(["sh", "-ec", command])
    }

    @Test(arguments: ["-wal", "-shm", "-journal"], [true, false])
    func `no command accepts a read-only database next to a sidecar`(_ suffix: String, _ isInGeneration: Bool) throws {
        let sidecar = try (isInGeneration ? generation : store.path) + "/food.db\(suffix)"
        try Shell.must(["chmod", "u+w", generation])
        try Files.writeNew([1], to: sidecar)
        let status = try store.moult(["status"])
        #expect(status.output.contains("✗ food"), "\(status)")
        #expect(try store.state("food") == "damaged")
        #expect(try store.moult(["status", "--nagios"]).status == 2)
        let metrics = try store.moult(["status", "--prometheus"]).output
        #expect(metrics.split(separator: "\n").count { $0.hasSuffix(#"database="food",kind="reference"} 0"#) } == 2)
        for words in [["plan", releases.manifest(2)], ["apply", releases.manifest(2)]] {
            let refused = try store.moult(words)
            #expect(refused.status == 3, "\(refused)")
            #expect(refused.errors.contains(sidecar), "\(refused)")
        }
        try runAdvice("repair food with: ", in: status.output)
        #expect(try store.moult(["apply", releases.manifest(2)]).output.contains("nothing to do"))
        // Until then, the attempt that was refused is reported.
        #expect(try store.moult(["status", "--nagios"]).status == 0)
        #expect(try store.moult(["verify", "--deep"]).status == 0)
    }

    @Test func `applying an in-place release again is refused if its database is damaged`() throws {
        let app = try scratch.directory("app")
        let rows = "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) INSERT INTO t SELECT i FROM n;"
        try Files.writeNew(Array("CREATE TABLE t(x); \(rows)".utf8), to: "\(app)/words.sql")
        let draft: JSON = [
            "manifest": 1, "product": "local.place", "version": "1.0.0", "sequence": 1,
            "databases": ["words": ["kind": "reference", "place": "in-place", "build": ["script": "words.sql"]]],
        ]
        try Files.writeNew(Array(draft.pretty.utf8), to: "\(app)/draft.json")
        try Shell.must([BuiltMoult.path(), "pack", "-q", "--allow-dirty", "\(app)/draft.json", "-o", app])
        let placed = CopiedStore(path: scratch.path("placed"))
        try Shell.must([BuiltMoult.path(), "init", "-q", placed.path, "--product", "local.place"])
        try placed.must("apply", "\(app)/place-1.0.0.json")
        try Shell.must(["cp", "\(app)/words.db", "\(app)/sound"])
        try Shell.must(
            ["sh", "-ec", "chmod u+w words.db; printf X | dd of=words.db bs=1 seek=9000 conv=notrunc"], in: app)
        for _ in 1...2 {
            let refused = try placed.moult(["apply", "\(app)/place-1.0.0.json"])
            #expect(refused.status == 3, "\(refused)")
            #expect(refused.errors.contains("Install the app's files again"), "\(refused)")
            #expect(try placed.state("words") == "changed")
        }
        try Shell.must(["cp", "\(app)/sound", "\(app)/words.db"])
        try placed.must("apply", "\(app)/place-1.0.0.json")
        #expect(try placed.moult(["verify", "--deep"]).status == 0)
    }

    @Test func `apply and plan name the repair of a shared database that lacks a table`() throws {
        try Shell.must(["sqlite3", "\(store.path)/app.db", "DROP TABLE item"])
        for words in [["plan", releases.manifest(2)], ["apply", releases.manifest(2)]] {
            let refused = try store.moult(words)
            #expect(refused.status == 3, "\(refused)")
            #expect(refused.errors.contains("moult reset app --set-user-data-aside --store "), "\(refused)")
        }
        try store.must("reset", "app", "--set-user-data-aside")
        #expect(try store.moult(["apply", releases.manifest(2)]).output.contains("nothing to do"))
    }

    @Test func `status --deep does not suggest removing links of the release`() throws {
        let lost = try generation
        try Shell.must(["sh", "-ec", "chmod -R u+w \(lost); rm -r \(lost)"])
        let deep = try store.moult(["status", "--deep"])
        #expect(deep.status == 1 && !deep.output.contains("rm "), "\(deep)")
        try Files.remove("\(store.path)/food.db")
        #expect(try store.moult(["status", "--deep"]).status == 1)
        try runAdvice("fix: ", in: deep.output)
        #expect(try store.moult(["status", "--deep"]).status == 0)
        #expect(try store.moult(["verify", "--deep"]).status == 0)
    }

    @Test func `status --deep suggests mounting the disk of a user database, and not removing the link to it`() throws {
        try Shell.must(["mkdir", scratch.path("disk")])
        try Shell.must(["mv", "\(store.path)/diary.db", scratch.path("disk/diary.db")])
        try Files.symlink(to: scratch.path("disk/diary.db"), at: "\(store.path)/diary.db")
        try Shell.must(["mv", scratch.path("disk"), scratch.path("unmounted")])
        let deep = try store.moult(["status", "--deep"])
        #expect(deep.status == 1 && !deep.output.contains("rm "), "\(deep)")
        #expect(deep.output.contains("its disk may not be mounted"), "\(deep)")
        #expect(deep.output.contains("Mount that disk"), "\(deep)")
        #expect(try store.moult(["status"]).output.contains("Mount that disk"))
        #expect(try store.state("diary") == "missing")
    }

    @Test(arguments: ["transactions", "quarantine", "leases", "downloads"])
    func `an update creates missing empty directories of the store`(_ name: String) throws {
        try Shell.must(["rm", "-rf", "\(store.path)/.moult/\(name)"])
        try store.must("apply", releases.manifest(3))
        #expect(try store.moult(["verify", "--deep"]).status == 0)
    }

    @Test func `an update of a store without .moult keeps the databases`() throws {
        let copy = CopiedStore(path: try scratch.directory("copy"))
        try Shell.must(["sh", "-ec", "cp -a \(store.path)/* \(copy.path)/"])
        #expect(try copy.moult(["status", "--deep"]).status == 1)
        try copy.must("apply", releases.manifest(2))
        #expect(try copy.moult(["verify", "--deep"]).status == 0)
        #expect(try Shell.must(["sqlite3", "\(copy.path)/diary.db", "SELECT t FROM note"]) == "DIARY\n")
    }

    @Test(arguments: ["note.txt", ".DS_Store", "lost+found", "2.0.0+backup"])
    func `unknown files among the generations are ignored until the suggested command moves them`(_ name: String) throws
    {
        let path = "\(store.path)/.moult/generations/\(name)"
        if name.contains("+") { try Files.makeDirectory(path) } else { try Files.writeNew([], to: path) }
        for words in [
            ["status"], ["verify"], ["clean", "--keep", "1"], ["apply", releases.manifest(2)],
            ["status", "--processes"],
        ] {
            #expect(try store.moult(words).status == 0, "\(words)")
        }
        #expect(try !store.moult(["status"]).output.contains(name))
        let deep = try store.moult(["status", "--deep"])
        #expect(deep.status == 1)
        try runAdvice("fix: ", in: deep.output)
        #expect(try store.moult(["status", "--deep"]).status == 0)
        #expect(try Files.list(store.path).contains("\(name).moved"))
    }

    @Test func `quarantine and reset work despite impossible numbers in a quarantine record`() throws {
        try store.must("reset", "diary", "--set-user-data-aside")
        let set = try #require(try Files.list("\(store.path)/.moult/quarantine").first)
        let record = "\(store.path)/.moult/quarantine/\(set)/set.json"
        let edit = """
            import json, sys
            record = json.load(open(sys.argv[1]))
            record["number"] = 2**63 - 1
            record["rows"] = {"a": 2**63 - 1, "b": 2**63 - 1}
            json.dump(record, open(sys.argv[1], "w"))
            """
        try Shell.must(["python3", "-c", edit, record])
        #expect(try store.moult(["quarantine"]).status == 0)
        try store.must("reset", "diary", "--set-user-data-aside")
        #expect(try Files.list("\(store.path)/.moult/quarantine").count == 2)
    }
}
