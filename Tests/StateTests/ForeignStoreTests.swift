import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// A store that comes from another user does not make moult change files outside it.
@Suite struct ForeignStoreTests {
    private let scratch: Scratch
    private var store: String { scratch.path("store") }
    private var victim: String { scratch.path("private.db") }

    init() throws {
        scratch = try Scratch()
        let releases = try ReleaseMaker(in: scratch.path("rel"))
        for number in 1...2 {
            try releases.make(
                "\(number).0.0", sequence: number, [.reference("food", "CREATE TABLE food\(number)(x)")])
        }
        try must(["init", "-q", store, "--product", "org.example.test"])
        try must(["apply", "-q", "--store", store, scratch.path("rel/test-1.0.0.json")])
        try Shell.must(["chmod", "755", scratch.path])
        try Files.writeNew(Array("precious".utf8), to: victim)
    }

    private func must(_ words: [String]) throws { try Shell.must([BuiltMoult.path()] + words) }

    private func moult(_ words: [String], as user: UInt32 = 0) throws -> Shell.Ended {
        let prefix = user == 0 ? [] : ["setpriv", "--reuid=\(user)", "--regid=\(user)", "--clear-groups"]
        return try Shell.run(prefix + [BuiltMoult.path()] + words + ["--store", store])
    }

    /// Writes the record of a decided update with one effect, which recovery would perform.
    @discardableResult
    private func plant(_ change: JSON) throws -> String {
        let file = scratch.path("plan.json")
        let ended = try moult(["plan", "-q", "--output", file, scratch.path("rel/test-2.0.0.json")])
        try #require(ended.status == 2, "\(ended)")
        let plan = try JSON(parsing: try #require(try Files.read(file, limit: 1 << 20)), source: file)
        let effect: JSON = [
            "step": "delete", "phase": "delete", "database": "food", "mark": "~", "text": "", "change": change,
        ]
        guard case .object(var members) = plan else { throw MoultError(.system, what: "no plan") }
        for index in members.indices {
            if members[index].name == "effects" { members[index].value = [effect] }
            if members[index].name == "to" { members[index].value = plan["from"] ?? .null }
        }
        let directory = "\(store)/.moult/transactions/\(plan["plan"]?.string ?? "")"
        try Shell.must(["mkdir", "-p", "\(directory)/generation", "\(directory)/waiting"])
        let decided: JSON = ["plan": .object(members), "markers": [:]]
        try Files.writeNew(Array(decided.line.utf8), to: "\(directory)/decided.json")
        return directory
    }

    @Test(arguments: ["create", "link", "unlink", "quarantine", "parent", "behind a link"])
    func `recovery refuses a journal that changes a file outside the store`(_ kind: String) throws {
        try Files.symlink(to: scratch.path, at: "\(store)/behind")
        let change: JSON =
            switch kind {
            case "create": ["do": "create", "path": .string(victim), "size": 1]
            case "link": ["do": "link", "path": .string(victim), "member": "food.db"]
            case "unlink": ["do": "unlink", "path": .string(victim)]
            case "quarantine": ["do": "quarantine", "path": .string(victim), "why": "", "reason": "reset"]
            case "parent": ["do": "quarantine", "path": "../private.db", "why": "", "reason": "reset"]
            default: ["do": "quarantine", "path": "behind/private.db", "why": "", "reason": "reset"]
            }
        let directory = try plant(change)
        let read = try moult(["sql", "SELECT 1"])
        #expect(read.status == 0, "\(read)")
        #expect(read.errors.contains("is unfinished"), "\(read)")
        for words in [["recover"], ["recover", "--undo"], ["clean"]] {
            let ended = try moult(words)
            #expect(ended.status == 6, "\(words): \(ended)")
            #expect(ended.errors.contains("the unfinished update in \(directory) cannot be"), "\(words): \(ended)")
            #expect(try Files.read(victim, limit: 100) == Array("precious".utf8))
        }
        let command = try #require(try moult(["clean"]).errors.split(separator: "move its directory away: ").last)
        try Shell.must(["sh", "-ec", String(command.split(separator: "\n")[0])])
        #expect(try moult(["sql", "SELECT 1"]).status == 0)
        #expect(try moult(["verify"]).status == 0)
    }

    @Test(.enabled(if: geteuid() == 0, "only root may become another user"))
    func `a read-only command does not recover another user's store`() throws {
        let directory = try plant(["do": "unlink", "path": "food.db"])
        try Shell.must(["chown", "-hR", "4002", store])
        try Shell.must(["chmod", "-R", "a+rwX", store])
        let ended = try moult(["sql", "SELECT 1"], as: 4001)
        #expect(ended.status == 0, "\(ended)")
        #expect(try Files.facts("\(directory)/decided.json") != nil)
        #expect(try Files.facts("\(store)/food.db") != nil)
    }

    @Test(.enabled(if: geteuid() == 0, "only root may give files away"))
    func `root refuses a directory for caches that another user can change`() throws {
        let caches = try scratch.directory("caches")
        let settings = "{\"moult\": 1, \"product\": \"org.example.test\", \"cacheRoot\": \"\(caches)\"}"
        try Files.replace("\(store)/moult.json", with: Array(settings.utf8), mode: 0o644)
        let apply = ["apply", "-q", scratch.path("rel/test-1.0.0.json")]
        #expect(try moult(apply).status == 0)
        try Shell.must(["chown", "65534", caches])
        let update = ["apply", "-q", scratch.path("rel/test-2.0.0.json")]
        let ended = try moult(update)
        #expect(ended.status == 3, "\(ended)")
        #expect(ended.errors.contains("\(caches) belongs to user \(Files.userName(65534))"), "\(ended)")
        try Shell.must(["chown", "0", caches])
        try Shell.must(["mkdir", "\(caches)/.moult"])
        try Shell.must(["chown", "65534", "\(caches)/.moult"])
        #expect(try moult(update).errors.contains("\(caches)/.moult belongs to user \(Files.userName(65534))"))
    }

    @Test(.enabled(if: geteuid() == 0, "only root may give files away"))
    func `the directory for caches in the settings of another user is not used`() throws {
        let caches = try scratch.directory("caches")
        let settings = "{\"moult\": 1, \"product\": \"org.example.test\", \"cacheRoot\": \"\(caches)\"}"
        try Files.replace("\(store)/moult.json", with: Array(settings.utf8), mode: 0o644)
        try Shell.must(["chown", "-hR", "4002", store])
        try Shell.must(["chmod", "-R", "a+rwX", store])
        let ended = try moult(["apply", scratch.path("rel/test-2.0.0.json")], as: 4001)
        #expect(ended.status == 3, "\(ended)")
        #expect(ended.errors.contains("\(store)/moult.json belongs to user #4002"), "\(ended)")
    }

    @Test(
        .enabled(if: geteuid() == 0, "only root may give files away"),
        arguments: [
            ["status"], ["verify"], ["attach"], ["sql", "SELECT * FROM cache.n"],
            ["sql", "--write", "DELETE FROM cache.n"],
            ["inspect"], ["status", "--deep"],
        ])
    func `no command opens a cache of this user that another user's settings name`(words: [String]) throws {
        let releases = try ReleaseMaker(in: scratch.path("cache"))
        try releases.make("3.0.0", sequence: 3, [.cache("cache", "CREATE TABLE n(x)")])
        try must(["apply", "-q", "--store", store, scratch.path("cache/test-3.0.0.json")])
        let caches = try scratch.directory("caches")
        try Shell.must(["sqlite3", "\(caches)/cache.db", "CREATE TABLE n(x); INSERT INTO n VALUES('private')"])
        let settings = "{\"moult\": 1, \"product\": \"org.example.test\", \"cacheRoot\": \"\(caches)\"}"
        try Files.replace("\(store)/moult.json", with: Array(settings.utf8), mode: 0o644)
        try Shell.must(["chown", "-hR", "4002", store])
        try Shell.must(["chmod", "-R", "a+rwX", store])
        try Shell.must(["chown", "-R", "4001", caches])
        try Shell.must(["chmod", "700", caches])
        let ended =
            words == ["inspect"]
            ? try Shell.run([
                "setpriv", "--reuid=4001", "--regid=4001", "--clear-groups", BuiltMoult.path(), "inspect", store,
            ]) : try moult(words, as: 4001)
        #expect(!(ended.output + ended.errors).contains("private"), "\(ended)")
        #expect(ended.status != 0, "\(ended)")
        #expect(try Shell.must(["sqlite3", "\(caches)/cache.db", "SELECT x FROM n"]) == "private\n")
    }

    @Test(.enabled(if: geteuid() == 0, "only root may give files away"))
    func `a journal of another user is moved away, and the healthy database next to it is not set aside`() throws {
        let releases = try ReleaseMaker(in: scratch.path("user"))
        try releases.make("3.0.0", sequence: 3, [.user("diary", "CREATE TABLE day(x)")])
        try must(["apply", "-q", "--store", store, scratch.path("user/test-3.0.0.json")])
        let journal = "\(store)/diary.db-journal"
        try Files.writeNew(Array("foreign".utf8), to: journal)
        try Shell.must(["chown", "65534", journal])
        try Shell.must(["chmod", "go-w", "\(store)/diary.db"])
        let command = shellLine(["mv", journal, "\(journal).aside"])
        for verb in [["verify"], ["status"], ["status", "--deep"]] {
            let text = try moult(verb).output.replacing("\n", with: " ")
            #expect(text.contains("belongs to user \(Files.userName(65534))"), "\(verb): \(text)")
            #expect(text.contains(command), "\(verb): \(text)")
            #expect(!text.contains("--set-user-data-aside"), "\(verb): \(text)")
        }
        try Shell.must(["sh", "-ec", command])
        #expect(try moult(["verify"]).status == 0)
    }

    @Test func `recovery names a directory for caches that has changed, and how to continue`() throws {
        let (old, new) = (try scratch.directory("old"), try scratch.directory("new"))
        func set(_ cacheRoot: String) throws {
            let settings = "{\"moult\": 1, \"product\": \"org.example.test\", \"cacheRoot\": \"\(cacheRoot)\"}"
            try Files.replace("\(store)/moult.json", with: Array(settings.utf8), mode: 0o644)
        }
        try set(old)
        try plant(["do": "unlink", "path": .string("\(old)/thumbs.db")])
        try set(new)
        for words in [["recover"], ["recover", "--undo"]] {
            let ended = try moult(words)
            #expect(ended.status == 6, "\(ended)")
            #expect(ended.errors.contains("it changes caches in \(old), but \"cacheRoot\""), "\(ended)")
            #expect(ended.errors.contains("set \"cacheRoot\" to \(old), run moult recover"), "\(ended)")
        }
        try set(old)
        #expect(try moult(["recover"]).status == 0)
    }

    @Test(.enabled(if: geteuid() == 0, "only root may give files away"))
    func `a foreign sidecar that this user may not read does not hide the report of the store`() throws {
        let releases = try ReleaseMaker(in: scratch.path("user"))
        try releases.make("3.0.0", sequence: 3, [.user("diary", "CREATE TABLE day(x)")])
        try releases.make(
            "4.0.0", sequence: 4,
            [
                .user(
                    "diary", "CREATE TABLE day(x, y)",
                    migrations: ["1.sql": "ALTER TABLE day ADD y; PRAGMA user_version = 1"])
            ])
        try must(["apply", "-q", "--store", store, scratch.path("user/test-3.0.0.json")])
        try Shell.must(["chown", "-hR", "4001:4001", store])
        try Shell.must(["chmod", "go-w", "\(store)/diary.db"])
        let journal = "\(store)/diary.db-journal"
        try Files.writeNew(Array("foreign".utf8), to: journal, mode: 0o600)
        try Shell.must(["chown", "4002", journal])
        func text(_ words: [String]) throws -> String {
            let ended = try moult(words, as: 4001)
            return (ended.output + ended.errors).replacing(/\s+/, with: " ")
        }
        for verb in [["status"], ["verify"], ["status", "--deep"]] {
            let text = try text(verb)
            #expect(text.contains("belongs to user #4002"), "\(verb): \(text)")
            #expect(text.contains("chown --reference=\(store)/diary.db \(journal)"), "\(verb): \(text)")
            #expect(!text.contains("--set-user-data-aside"), "\(verb): \(text)")
        }
        for mode in ["600", "644"] {
            try Shell.must(["chmod", mode, journal])
            let text = try text(["apply", scratch.path("user/test-4.0.0.json")])
            #expect(text.contains(journal) && !text.contains("--set-user-data-aside"), "\(mode): \(text)")
        }
    }

    @Test(.enabled(if: geteuid() == 0, "only root may give files away"))
    func `inspect refuses a database next to another user's journal, and names the users`() throws {
        let file = scratch.path("a.db")
        try Shell.must(["sqlite3", file, "CREATE TABLE t(x)"])
        try Files.writeNew([1], to: "\(file)-journal")
        try Shell.must(["chown", "65534", "\(file)-journal"])
        let ended = try Shell.run([BuiltMoult.path(), "inspect", file])
        #expect(ended.status != 0)
        #expect(ended.errors.contains("but only user root may write to the database"), "\(ended)")
    }

    @Test(.enabled(if: geteuid() == 0, "only root may give files away"))
    func `no signal is sent because of another user's PID file`() throws {
        let file = scratch.path("app.pid")
        let sleeper = try Program(["sleep", "300"])
        try Files.writeNew(Array("\(sleeper.pid)".utf8), to: file)
        try Shell.must(["chown", "65534", file])
        let consumer =
            "{\"name\": \"app\", \"signal\": {\"pidFile\": \"\(file)\", \"release\": \"TERM\", \"reload\": \"TERM\"}}"
        let settings = "{\"moult\": 1, \"product\": \"org.example.test\", \"consumers\": [\(consumer)]}"
        try Files.replace("\(store)/moult.json", with: Array(settings.utf8), mode: 0o644)
        let ended = try moult(["apply", scratch.path("rel/test-2.0.0.json")])
        #expect((ended.output + ended.errors).contains("\(file) belongs to user \(Files.userName(65534))"), "\(ended)")
        #expect(try Shell.run(["kill", "-0", "\(sleeper.pid)"]).status == 0)
        sleeper.signal(SIGKILL)
        sleeper.wait()
    }

    @Test(.enabled(if: geteuid() == 0, "only root may give files away"))
    func `no signal is sent through another user's link to a PID file`() throws {
        let sleeper = try Program(["sleep", "300"])
        try Files.writeNew(Array("\(sleeper.pid)".utf8), to: scratch.path("own.pid"))
        let run = try scratch.directory("run")
        try Shell.must(["ln", "-s", scratch.path("own.pid"), "\(run)/app.pid"])
        try Shell.must(["chown", "-h", "65534", run, "\(run)/app.pid"])
        let consumer =
            "{\"name\": \"app\", \"signal\": {\"pidFile\": \"\(run)/app.pid\", \"release\": \"TERM\", \"reload\": \"TERM\"}}"
        let settings = "{\"moult\": 1, \"product\": \"org.example.test\", \"consumers\": [\(consumer)]}"
        try Files.replace("\(store)/moult.json", with: Array(settings.utf8), mode: 0o644)
        let ended = try moult(["apply", scratch.path("rel/test-2.0.0.json")])
        let why = "leads through a link of user \(Files.userName(65534))"
        #expect((ended.output + ended.errors).contains(why), "\(ended)")
        #expect(try Shell.run(["kill", "-0", "\(sleeper.pid)"]).status == 0)
        sleeper.signal(SIGKILL)
        sleeper.wait()
    }
}
