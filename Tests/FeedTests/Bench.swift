import MoultBasics
import MoultFiles
import TestSupport

/// A directory in which the built command runs, with releases of a product in `rel`.
final class Bench: Sendable {
    let scratch: Scratch

    init() throws { scratch = try Scratch() }

    func path(_ name: String) -> String { scratch.path(name) }

    /// Runs a shell command in the directory, with `moult` as the built command.
    func run(_ line: String, environment: [String: String] = [:]) throws -> Shell.Ended {
        try scratch.run(line, environment: environment)
    }

    @discardableResult
    func must(_ line: String, status: Int32 = 0) throws -> String {
        try scratch.must(line, status: status)
    }

    /// Runs a command and returns its error: one line, and a second one if the error has advice. If the command exits with a
    /// different status, the result begins with that status.
    func refusal(_ line: String, status: Int32) throws -> String {
        let ended = try run(line)
        guard ended.status == status else { return "status \(ended.status): \(ended.errors)\(ended.output)" }
        return ended.errors
    }

    /// Publishes release 1.0.0 with a key list, for which the files of separate root, release and timestamp (`online`) keys are made.
    func publishWithKeyList() throws {
        for name in ["root", "release", "online"] { try key(name) }
        try must(
            "moult trust keys -q --product org.example.test --root root.pub --release release.pub --timestamp online.pub -k root.key"
        )
        try release("1.0.0", sequence: 1)
        try must("moult publish public rel/test-1.0.0.json -q --trust keys/keys-1.json -k release.key -k online.key")
    }

    /// Creates a release, and returns the path of its manifest, relative to the directory.
    @discardableResult
    func release(_ version: String, sequence: Int, rows: Int = 2, top: [JSON.Member] = []) throws -> String {
        let maker = try ReleaseMaker(in: path("rel"))
        let sql = """
            CREATE TABLE food(id INTEGER PRIMARY KEY, release TEXT);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(rows))
            INSERT INTO food SELECT i, '\(version)' FROM n;
            """
        _ = try maker.make(version, sequence: sequence, [.reference("food", sql)], top: top)
        return "rel/test-\(version).json"
    }

    /// Creates a key pair without a password, `NAME.key` and `NAME.pub`; returns the public key line.
    @discardableResult
    func key(_ name: String) throws -> String {
        try must("moult keygen \(name) --no-password -q && tail -n 1 \(name).pub").split(separator: "\n")[0].description
    }

    func id(_ name: String) throws -> String {
        try must("head -n 1 \(name).pub").split(separator: " ").last?.split(separator: "\n").first.map(String.init)
            ?? ""
    }

    /// Returns the installed release, read from the database of the store.
    func installed() throws -> String {
        try must("sqlite3 'file:store/food.db?immutable=1' 'SELECT DISTINCT release FROM food'").split(separator: "\n")
            .joined()
    }

    /// Starts a process that holds the lock of the store, as a running update does.
    func updater() throws -> Background {
        let script = """
            import fcntl, signal, sys
            lock = open(sys.argv[1])
            fcntl.flock(lock, fcntl.LOCK_EX)
            open(sys.argv[2], "w").close()
            signal.pause()
            """
        let program = try Background(["python3", "-c", script, path("store/.moult/lock"), path("held")])
        try program.wait { try Files.facts(path("held")) != nil }
        return program
    }
}
