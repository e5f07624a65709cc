import MoultLibc
import TestSupport

/// Another process that uses a database through Python's sqlite3, line by line.
///
/// Each line is a Python statement in which `c` is an open connection in autocommit mode.
final class Writer {
    private let child: Program

    init(_ path: String) throws {
        child = try Program.python(Self.program, path)
        _ = child.line()
    }

    var pid: Int32 { child.pid }

    /// Runs the statement in that process; returns `ok`, or the error.
    @discardableResult
    func run(_ statement: String) -> String {
        child.write(statement + "\n")
        return child.line() ?? ""
    }

    @discardableResult
    func execute(_ sql: String) -> String { run("c.execute(\"\"\"\(sql)\"\"\").fetchall()") }

    /// Ends the process without closing the database, as in a crash.
    func crash() {
        child.signal(SIGKILL)
        child.wait()
    }

    private static let program = """
        import sqlite3, sys
        c = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=0)
        print('ready')
        for line in sys.stdin:
            try:
                exec(line)
                print('ok')
            except Exception as error:
                print(error)
        """
}
