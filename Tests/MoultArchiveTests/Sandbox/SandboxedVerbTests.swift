import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// Verbs that read untrusted databases: whatever a database contains, the command survives, reports the problem in
/// time, and changes nothing.
@Suite struct SandboxedVerbTests {
    let scratch: Scratch

    /// `bomb.db` has a tree in which every page refers to the next page dozens of times, so that counting its rows
    /// never ends.
    static let bomb = """
        import sqlite3, struct
        page = 512
        c = sqlite3.connect("bomb.db"); c.execute("PRAGMA page_size = 512"); c.execute("CREATE TABLE t(x)")
        c.execute("INSERT INTO t VALUES(1)"); c.commit(); c.close()
        b = bytearray(open("bomb.db", "rb").read())
        leaf = b[page:2 * page]
        levels = 16
        out = bytearray(b[:page])
        for level in range(levels):
            child = level + 3
            p = bytearray(page); cells = 60
            struct.pack_into(">BHHHBI", p, 0, 5, 0, cells, page - cells * 5, 0, child)
            for i in range(cells):
                at = page - (i + 1) * 5
                struct.pack_into(">H", p, 12 + 2 * i, at); struct.pack_into(">IB", p, at, child, 1)
            out += p
        out += leaf
        struct.pack_into(">I", out, 28, len(out) // page)
        open("bomb.db", "wb").write(out)
        """

    init() throws {
        scratch = try Scratch()
        try Shell.must(["python3", "-c", Self.bomb], in: scratch.path)
        try Shell.must(
            ["sqlite3", scratch.path("good.db")], input: "CREATE TABLE t(x); INSERT INTO t VALUES(1), (2), (3);")
    }

    /// Creates `slow.db`, which is sound, but whose check takes many seconds on any machine, because SQLite computes a
    /// column. The file is created quickly, because the column gets its slow expression after the rows were inserted.
    private func makeSlow() throws {
        try Shell.must(
            ["sqlite3", scratch.path("slow.db")],
            input: """
                CREATE TABLE t(x, y NOT NULL AS (length(replace(hex(zeroblob(4)), '00', printf('%.3c', x)))));
                WITH n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < 3000) INSERT INTO t SELECT i FROM n;
                PRAGMA writable_schema = ON;
                UPDATE sqlite_schema SET sql = replace(sql, 'zeroblob(4)', 'zeroblob(4000000)');
                """)
    }

    private func run(_ line: String) throws -> Shell.Ended {
        let built = Files.directory(of: try BuiltMoult.path())
        return try Shell.run(
            ["bash", "-c", line], in: scratch.path,
            environment: ["PATH": "\(built):/usr/local/bin:/usr/bin:/bin", "TMPDIR": try scratch.directory("tmp")])
    }

    /// The checking process has only the capability to read all files, and its confinement allows only the given files.
    @Test(.enabled(if: geteuid() == 0, "only root reads files of other users"))
    func `root can inspect databases that only another user may read`() throws {
        try Shell.must(
            [
                "sh", "-ec",
                "mkdir -m 700 theirs; cp good.db theirs/; chmod 600 theirs/good.db; cp -p theirs/good.db their.db; chown -R 65534 theirs their.db",
            ],
            in: scratch.path)
        let looked = try run(
            "moult inspect theirs/good.db && moult inspect their.db && moult diff good.db theirs/good.db")
        #expect(looked.status == 0, "\(looked)")
        #expect(looked.output.contains("t         3  x"), "\(looked)")
    }

    /// Creates a store with release 1.0.0, and a release 2.0.0 whose database was damaged before the manifest was
    /// written.
    private func release(spoilt: String) throws {
        let maker = try ReleaseMaker(in: scratch.path("rel"))
        let sql = "CREATE TABLE food(id INTEGER PRIMARY KEY, name TEXT); INSERT INTO food VALUES(1, 'rye');"
        try maker.make("1.0.0", sequence: 1, [.reference("food", sql)])
        try maker.make("2.0.0", sequence: 2, [.reference("food", sql)], format: .tar)
        let script = """
            import hashlib, json, os, subprocess
            work = "rel/2.0.0.work"
            \(spoilt)
            subprocess.run(["tar", "-cf", "../test-2.0.0.tar", "food.db"], cwd=work, check=True)
            def facts(path):
                b = open(path, "rb").read()
                return {"size": len(b), "sha256": hashlib.sha256(b).hexdigest()}
            path = "rel/test-2.0.0.json"
            m = json.load(open(path))
            m["databases"]["food"].update(facts(work + "/food.db"))
            m["bundle"] = {"file": "test-2.0.0.tar"} | facts("rel/test-2.0.0.tar")
            open(path, "w").write(json.dumps(m))
            """
        try Shell.must(["python3", "-c", script], in: scratch.path)
        let ended = try run("moult init -q --product org.example.test && moult apply -q rel/test-1.0.0.json")
        #expect(ended.status == 0, "\(ended.errors)")
    }

    /// Runs a command that must change nothing, and returns its output.
    private func harmless(_ line: String) throws -> Shell.Ended {
        try scratch.directory("tmp")
        let aside: Set = ["tmp", "trace"]
        let before = try Tree(scratch.path, skipping: aside)
        let ended = try run(line)
        #expect(try Tree(scratch.path, skipping: aside).lines.dropFirst() == before.lines.dropFirst(), "\(line)")
        #expect(try Files.list(scratch.path("tmp")) == [], "\(line)")
        return ended
    }

    @Test(arguments: ["inspect bomb.db", "diff slow.db good.db", "diff good.db slow.db --html page"])
    func `an endless check is stopped`(verb: String) throws {
        try makeSlow()
        // The command allows a minute of CPU time; a shorter limit of the user also applies.
        let ended = try harmless("ulimit -S -t 1; moult \(verb)")
        #expect(ended.status == 3)
        let names = verb.split(separator: " ").filter { $0.hasSuffix(".db") }
        let what = names.count == 1 ? "inspect \(names[0])" : "compare \(names[0]) with \(names[1])"
        #expect(
            ended.errors == """
                moult: error: cannot \(what): the process that reads the databases took more CPU time than legitimate databases of that size need
                  Nothing was changed. Try again with more memory; if it fails again, do not use this database.

                """)
        #expect(ended.output == "")
    }

    @Test func `an endless check in a deep plan is stopped`() throws {
        try makeSlow()
        try release(spoilt: "os.replace('slow.db', work + '/food.db')")
        let ended = try harmless("ulimit -S -t 1; moult plan --deep rel/test-2.0.0.json")
        #expect(ended.status == 3)
        #expect(ended.errors.contains("food.db cannot be checked: the check took more than"), "\(ended)")
    }

    /// The advice names the file of the user, not the unpacked file.
    @Test func `the error for a damaged database in a release names the release`() throws {
        try release(spoilt: "os.replace('bomb.db', work + '/food.db')")
        let ended = try harmless("moult diff good.db rel/test-2.0.0.json")
        #expect(ended.status == 1, "\(ended)")
        #expect(
            ended.errors.hasPrefix("moult: error: the database food of rel/test-2.0.0.json is damaged: "), "\(ended)")
        #expect(ended.errors.hasSuffix("To see the findings: moult inspect rel/test-2.0.0.json\n"), "\(ended)")
        let (deep, applied) = (
            try harmless("moult plan --deep rel/test-2.0.0.json"), try run("moult apply rel/test-2.0.0.json")
        )
        #expect(deep.status == applied.status && deep.errors == applied.errors, "\(deep) \(applied)")
    }

    /// SQLite crashes. Here, a signal ends the process when the process confines itself.
    @Test(arguments: ["inspect good.db", "diff good.db bomb.db"])
    func `a crash of SQLite in a read-only verb is reported as a refusal`(verb: String) throws {
        let wrapper = "strace -f -qq -o trace -e trace=prctl -e inject=prctl:signal=SEGV"
        let ended = try harmless("\(wrapper) moult \(verb)")
        #expect(ended.status == 3, "\(ended.errors)")
        #expect(ended.errors.contains(": the process that reads the databases ended with SIGSEGV\n"), "\(ended.errors)")
        let json = try run("\(wrapper) moult \(verb) --json")
        #expect(try JSON(parsing: json.output, source: "its answer")["error"]?["code"]?.string == "E412")
    }

    /// Files that are damaged or not databases are reported as they are without a sandbox, by SQLite or by moult.
    @Test(arguments: [
        "printf 'SQLite format 3\\0' > x.db", "cp good.db x.db && truncate -s 1000 x.db",
        "cp good.db x.db && printf '\\377\\377' | dd of=x.db bs=1 seek=4100 conv=notrunc status=none",
        "cp good.db x.db && dd if=/dev/urandom of=x.db bs=1 seek=100 count=4000 conv=notrunc status=none",
    ])
    func `read-only verbs report damage`(spoil: String) throws {
        try Shell.must(["sh", "-ec", spoil], in: scratch.path)
        for verb in ["inspect x.db", "diff x.db good.db", "diff good.db x.db"] {
            let ended = try harmless("moult \(verb)")
            #expect(ended.status == 1)
            #expect(ended.errors.hasPrefix("moult: error: ") || ended.output.contains("\n  ✗ "), "\(ended)")
        }
    }

    /// The command does not open the database. The process that opens the database has confined itself before it uses
    /// SQLite.
    @Test func `only a confined process opens the database`() throws {
        let ended = try harmless("strace -f -qq -o trace -e trace=openat,prctl moult inspect good.db")
        #expect(ended.status == 0, "\(ended.errors)")
        let lines = try Shell.must(["cat", scratch.path("trace")]).split(separator: "\n").map { String($0) }
        let confined = try #require(lines.firstIndex { $0.contains("PR_SET_SECCOMP, SECCOMP_MODE_FILTER, {") })
        let pid = try #require(lines[confined].split(separator: " ").first)
        // This descriptor is only for a Landlock rule, and not used for reading.
        let opened = lines.indices.filter { lines[$0].contains("good.db") && !lines[$0].contains("O_PATH") }
        for index in opened { #expect(lines[index].hasPrefix("\(pid) "), "\(lines[index])") }
        // moult reads the first bytes of the file to determine its type.
        #expect(opened.count { $0 < confined } == 1)
        #expect(opened.contains { $0 > confined })
    }

    @Test(arguments: ["inspect bomb.db", "diff slow.db good.db", "diff good.db slow.db --html page"])
    func `an interrupted command stops its sandboxed process`(_ verb: String) throws {
        try makeSlow()
        // Test threads block signals, and child processes inherit the blocked signals.
        let script = """
            import os, signal, subprocess, time
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            command = subprocess.Popen("exec moult \(verb)", shell=True)
            while "secluded-1" not in subprocess.run(
                ["ps", "--ppid", str(command.pid), "-o", "args="], capture_output=True, text=True).stdout: time.sleep(0.01)
            command.terminate()
            print(command.wait())
            """
        let ended = try harmless("python3 -c '\(script)'")
        #expect(ended.output == "1\n")
        // On a busy machine, the confined process may not end within the two seconds after which the watchdog ends the command.
        #expect(
            ended.errors == "moult: error: stopped: moult received SIGTERM\n"
                || ended.errors.hasPrefix("moult: error: interrupted while SQLite worked on ")
                    && ended.errors.contains("moult received SIGTERM"),
            "\(ended.errors)")
        // No process is left.
        #expect(try Shell.run(["pgrep", "-f", "secluded-1 \(scratch.path)"]).status == 1)
    }

    /// The confined process cannot write the page, so the command does.
    @Test func `diff --html writes its page`() throws {
        let ended = try run("ulimit -S -t 3; moult diff bomb.db bomb.db --html same.html")
        #expect(ended.status == 0, "\(ended)")
        #expect(try Files.facts(scratch.path("same.html"))?.kind == .file)
    }
}
