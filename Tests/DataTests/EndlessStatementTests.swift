import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// A release can have statements that never end with a user's rows. A signal stops them, and nothing changes.
@Suite(.tags(.thorough)) struct EndlessStatementTests {
    let shop: Shop
    init() throws { shop = try Shop() }

    private static let endless = """
        (WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT max(n) FROM c)
        """
    private static let item = "CREATE TABLE item(name TEXT PRIMARY KEY, mine INT DEFAULT 0);"
    private static let note = "CREATE TABLE note(t); PRAGMA user_version = 1;"

    /// Returns the processor time of a process and its present children, in ticks.
    private static func ticks(_ pid: pid_t) throws -> Int {
        let children = try text("/proc/\(pid)/task/\(pid)/children").split(separator: " ").compactMap { pid_t($0) }
        return ([pid] + children).reduce(0) { sum, pid in
            // The fields after the name of the program: state, parent, ... and then user and system time. The process may have ended
            // since its number was read.
            let fields = ((try? text("/proc/\(pid)/stat")) ?? "").drop { $0 != ")" }.split(separator: " ")
            return fields.count > 13 ? sum + (Int(fields[12]) ?? 0) + (Int(fields[13]) ?? 0) : sum
        }
    }

    private static func text(_ path: String) throws -> String {
        try String(decoding: Files.read(path, limit: 4096) ?? [], as: UTF8.self)
    }

    private func stop(_ number: Int32, _ arguments: String...) throws -> Int32 {
        try Self.stop(number, [Shop.command()] + arguments + ["--store", shop.store])
    }

    /// Starts the command, and sends the signal once it has computed for two seconds.
    static func stop(_ number: Int32, _ command: [String]) throws -> Int32 {
        let command = try Program(command)
        while try command.isRunning && Self.ticks(command.pid) < 200 { usleep(10_000) }
        try #require(command.isRunning, "the command ended with \(command.wait())")
        command.signal(number)
        // A statement that the signal does not stop would run forever.
        let end = ContinuousClock.now + .seconds(30)
        while command.isRunning {
            guard ContinuousClock.now < end else { return -1 }
            usleep(10_000)
        }
        return command.wait()
    }

    private func begin(_ statement: String) throws -> (release: String, before: Tree) {
        let condition = ["condition", "feed"].contains(statement) ? "mine < \(Self.endless)" : "mine = 1"
        var shared = Shipped.shared(Self.item, [["table": "item", "where": .string(condition)]])
        try shop.install(try shop.makeUnchecked("1.0.0", [.user(Self.note), shared]))
        try shop.sql("diary.db", "INSERT INTO note VALUES('DIARY')")
        try shop.sql("app.db", "INSERT INTO item VALUES('MINE', 1)")
        shared.sql += "INSERT INTO item VALUES('TWO', 0);"
        var user = Shipped.user(Self.note)
        if ["trial", "migration"].contains(statement) {
            // The migration can also recognize that it only runs for trial.
            let isReal =
                statement == "trial"
                ? "1" : "EXISTS(SELECT 1 FROM pragma_database_list WHERE file LIKE '%/store/diary.db')"
            let update = "UPDATE note SET n = CASE WHEN \(isReal) THEN \(Self.endless) END;"
            user = .user(
                "CREATE TABLE note(t, n); PRAGMA user_version = 2;",
                ["2": "ALTER TABLE note ADD COLUMN n; \(update) PRAGMA user_version = 2;"])
        }
        return try (shop.makeUnchecked("2.0.0", [user, shared]), shop.tree())
    }

    @Test(arguments: ["condition", "feed", "trial", "migration"], [SIGTERM, SIGINT])
    func `a signal stops a statement that never ends, and nothing changes`(statement: String, number: Int32) throws {
        let (release, before) = try begin(statement)
        let feed = shop.scratch.path("public")
        if statement == "feed" { try Shell.must([Shop.command(), "publish", "--allow-unsigned", "-q", feed, release]) }
        #expect(try stop(number, "apply", statement == "feed" ? feed : release) == 1)
        // The store remembers the feed that it has read, which adds a directory.
        let changed = Set(try shop.tree().lines).symmetricDifference(before.lines)
        #expect(changed.allSatisfy { statement == "feed" && $0.hasPrefix(".moult directory") }, "\(changed.sorted())")
        #expect(try shop.moult("verify").status == 0)
    }
}
