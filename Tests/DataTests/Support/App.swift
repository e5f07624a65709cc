import MoultFiles
import TestSupport
import Testing

/// An app that has a database open, in its own process.
struct App {
    private let program: Program
    var pid: Int32 { program.pid }

    /// Opens a database, runs statements, and keeps the connection open.
    init(opens path: String, _ statements: String...) throws { try self.init(opens: path, all: statements) }

    init(opens path: String, all statements: [String]) throws {
        program = try Program(["python3", "-u", "-c", Self.text, path] + statements)
        try #require(program.line() == "ready", "the app could not open \(path)")
    }

    /// Kills the app, so that it does not close the database.
    func crash() {
        program.signal(9)
        program.wait()
    }

    /// Closes the database and ends.
    func quit() {
        program.write("quit\n")
        program.wait()
    }

    /// Runs statements with a collation `appcoll` and a function `appfunc` that only the app has. With `crash`, the app
    /// exits without closing the database.
    static func run(_ path: String, crash: Bool = false, _ statements: String...) throws {
        try run(path, crash: crash, all: statements)
    }

    static func run(_ path: String, crash: Bool = false, all statements: [String]) throws {
        let program = try Program(["python3", "-u", "-c", text, path] + statements)
        try #require(program.line() == "ready", "the app could not write to \(path)")
        program.write(crash ? "crash\n" : "quit\n")
        program.wait()
    }

    private static let text = """
        import os, sqlite3, sys
        c = sqlite3.connect(sys.argv[1], isolation_level=None)
        c.create_collation("appcoll", lambda a, b: (a.lower() > b.lower()) - (a.lower() < b.lower()))
        c.create_function("appfunc", 1, lambda x: x, deterministic=True)
        for statement in sys.argv[2:]: c.execute(statement).fetchall()
        print("ready")
        if sys.stdin.readline() == "crash\\n": os._exit(0)
        c.close()
        """
}
