import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport

/// A store under load: programs read and write a shared database while releases are installed. Every shipped row has
/// the number of its release, in two tables and in `moult_release`: a reader that finds two numbers has read a mix, and
/// a reader that finds a lower number than before has read an older release after a newer one.
struct Load {
    let scratch: Scratch
    let root: String
    let maker: ReleaseMaker

    /// The number of releases. MOULT_RELEASES=200 is the documented number, and takes minutes (`make load`).
    static let count = getenv("MOULT_RELEASES").flatMap { Int(String(cString: $0)) } ?? 5

    var pantry: String { "\(root)/pantry.db" }

    init() throws {
        scratch = try Scratch()
        root = scratch.path("store")
        maker = try ReleaseMaker(in: scratch.path("releases"))
    }

    func release(_ number: Int) throws -> String {
        try maker.make(
            "\(number).0.0", sequence: number,
            [
                .shared(
                    "pantry",
                    """
                    CREATE TABLE food(id INTEGER PRIMARY KEY, release INTEGER, name TEXT, editable INTEGER NOT NULL DEFAULT 0);
                    CREATE TABLE info(release INTEGER, text TEXT);
                    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
                    INSERT INTO food SELECT i, \(number), hex(randomblob(40)), 0 FROM n;
                    INSERT INTO info SELECT release, name FROM food;
                    """,
                    more: [
                        .init("preserve", [["table": "food", "where": "editable = 1"]])
                    ])
            ])
    }

    /// Code that the programs share. A gate can block the programs, as an app would block its own threads while it releases a
    /// database. The programs end when their input ends.
    private static let common = """
        import contextlib, fcntl, os, select, sqlite3, subprocess, sys, time
        path, gate = sys.argv[1], sys.argv[2]
        def ended(): return bool(select.select([sys.stdin], [], [], 0)[0])
        @contextlib.contextmanager
        def turn():
            while gate:
                f = os.open(gate, os.O_RDWR | os.O_CREAT)
                fcntl.flock(f, fcntl.LOCK_SH)
                if not os.path.exists(gate + ".closed"): break
                os.close(f)
                time.sleep(0.002)
            try: yield
            finally:
                if gate: os.close(f)
        """

    private static let reader = """

        how, store, moult = sys.argv[3:6]
        query = "SELECT group_concat(DISTINCT r) FROM (SELECT release r FROM food WHERE editable = 0 UNION ALL SELECT release FROM info UNION ALL SELECT CAST(release AS INTEGER) FROM moult_release)"
        kept = sqlite3.connect(path, timeout=5) if how == "connection" else None
        def run(words): return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()[-1]
        def read():
            if kept: return kept.execute(query).fetchone()[0]
            if how == "shell": return run(["sqlite3", "-cmd", ".timeout 5000", path, query])
            if how == "moult": return run([moult, "sql", "--store", store, query])
            c = sqlite3.connect(path, timeout=5)
            try: return c.execute(query).fetchone()[0]
            finally: c.close()
        reads, last, faults = 0, 0, []
        while not ended():
            try:
                with turn(): seen = str(read())
                if not seen.isdigit(): faults.append("mix " + seen)
                elif int(seen) < last: faults.append(f"{seen} after {last}")
                else: last = int(seen)
            except subprocess.CalledProcessError as e: faults.append(e.stderr)
            except Exception as e: faults.append(repr(e))
            reads += 1
            if reads == 1: print("ready")
            if how != "connection": time.sleep(0.01)
        print(reads, last, len(faults), faults[:2])
        """

    private static let writer = """

        first, keep = int(sys.argv[3]), sys.argv[4] == "keep"
        def connect(): return sqlite3.connect(path, timeout=5, isolation_level=None)
        kept = connect() if keep else None
        done, faults = 0, []
        while not ended():
            try:
                with turn():
                    c = kept or connect()
                    c.execute("BEGIN IMMEDIATE")
                    c.execute("INSERT INTO food VALUES(?, 0, 'mine', 1)", (first + done + 1,))
                    c.execute("INSERT OR REPLACE INTO food VALUES(?, 0, ?, 1)", (first, str(done + 1)))
                    c.execute("COMMIT")
                    done += 1
                    if not keep: c.close()
            except Exception as e: faults.append(repr(e))
            if done == 1: print("ready")
            time.sleep(0.005)
        print(done, len(faults), faults[:2])
        """

    func reader(_ how: String, gate: String = "") throws -> Program {
        try Program([
            "python3", "-u", "-c", Self.common + Self.reader, pantry, gate, how, root, BuiltMoult.path(),
        ])
    }

    func writer(_ number: Int, keepsOpen: Bool, gate: String = "") throws -> Program {
        try Program([
            "python3", "-u", "-c", Self.common + Self.writer, pantry, gate, "\(number * 1_000_000)",
            keepsOpen ? "keep" : "close",
        ])
    }

    /// Installs `count` releases, starting with release 2, each in a separate process.
    func releases(_ count: Int) throws {
        for number in 2...count + 1 {
            let manifest = try release(number)
            let ended = try Shell.run([BuiltMoult.path(), "apply", "-q", "--store", root, manifest])
            guard ended.status == 0 else {
                throw MoultError(.system, what: "release \(number) ended with \(ended.status)", why: ended.errors)
            }
        }
    }

    /// Ends a program and returns its output: the numbers at the beginning, and the complete line.
    static func end(_ program: Program) -> (numbers: [Int], text: String) {
        program.closeInput()
        let text = program.line() ?? ""
        // The last program to close the database locks the file exclusively for a moment.
        program.wait()
        return (text.split(separator: " ").prefix { Int($0) != nil }.compactMap { Int($0) }, text)
    }
}
