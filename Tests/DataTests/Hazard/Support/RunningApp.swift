import MoultBasics
import MoultFiles
import TestSupport

/// An external program that has a database open and follows instructions.
final class RunningApp {
    private let process: Background
    private let work: Scratch
    private var number = 0

    var pid: Int32 { process.pid }

    /// Opens the database with these pragmas, and runs a query.
    init(_ path: String, _ pragmas: String = "") throws {
        work = try Scratch()
        process = try Background(["python3", "-c", Self.program, path, work.path])
        if !pragmas.isEmpty { try tell("script", pragmas) }
        try run("SELECT count(*) FROM sqlite_schema")
    }

    /// Runs a statement and returns its rows in the format of the sqlite3 shell, or `error: ` with SQLite's message.
    @discardableResult
    func run(_ sql: String) throws -> String { try tell("run", sql) }

    /// Starts a query and reads its first row.
    func begin(_ sql: String) throws { try tell("begin", sql) }

    /// Returns the remaining distinct rows of the started query, each with its count.
    func rest() throws -> String { try tell("rest", "") }

    /// Closes the connection, like an app that exits.
    func close() throws {
        try tell("close", "")
        _ = try process.end()
    }

    @discardableResult
    private func tell(_ verb: String, _ text: String) throws -> String {
        number += 1
        let (order, answer) = (work.path("order\(number)"), work.path("answer\(number)"))
        try Files.replace(order, with: Array("\(verb) \(text)".utf8))
        try process.wait { try Files.facts(answer) != nil }
        return String(decoding: try Files.read(answer, limit: 1 << 20) ?? [], as: UTF8.self)
    }

    private static let program = """
        import collections, os, sqlite3, sys, time
        path, work, parent, number = sys.argv[1], sys.argv[2], os.getppid(), 0
        app = sqlite3.connect(path, isolation_level=None, timeout=5)
        def text(rows): return "".join("|".join(map(str, row)) + "\\n" for row in rows)
        while True:
            number += 1
            order = "%s/order%d" % (work, number)
            while not os.path.exists(order):
                if os.getppid() != parent: sys.exit()
                time.sleep(0.001)
            verb, sql = open(order).read().split(" ", 1)
            said = ""
            try:
                if verb == "script": app.executescript(sql)
                if verb == "run": said = text(app.execute(sql).fetchall())
                if verb == "begin": cursor = app.execute(sql); cursor.fetchone()
                if verb == "rest": said = text(sorted((n,) + r for r, n in collections.Counter(cursor.fetchall()).items()))
                if verb == "close": app.close()
            except sqlite3.Error as error:
                said = "error: %s\\n" % error
            answer = "%s/answer%d" % (work, number)
            open(answer + ".new", "w").write(said)
            os.rename(answer + ".new", answer)
            if verb == "close": sys.exit()
        """
}
