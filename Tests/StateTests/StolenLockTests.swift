import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// A process that may read a file or directory can lock it with `flock`, and block processes that wait for the lock.
@Suite struct StolenLockTests {
    private let scratch: Scratch
    private let releases: CopiedStore.Releases
    private let store: CopiedStore
    private var current: String { "\(store.path)/.moult/current" }

    init() throws {
        scratch = try Scratch()
        releases = try CopiedStore.Releases()
        store = try CopiedStore.make(.idle, at: scratch.path("store"), releases)
        // Other users have only read permission.
        try Shell.must(["chmod", "755", scratch.path])
    }

    private func leaseFile() throws -> String {
        "\(store.path)/.moult/leases/\(Files.name(of: try Files.resolved(current)))"
    }

    /// Removes the lease files, as in a store of an older version.
    private func removeLeaseFiles() throws { try Files.removeTree("\(store.path)/.moult/leases") }

    /// Runs a process that locks these files with `flock`.
    private func lock(_ paths: String..., shared: Bool = false) throws -> Program {
        let program = try Program(
            [
                "python3", "-u", "-c",
                """
                import fcntl, os, sys
                for path in sys.argv[2:]: fcntl.flock(os.open(path, os.O_RDONLY), int(sys.argv[1]))
                print("ready"); sys.stdin.read()
                """, "\(shared ? 1 : 2)",
            ] + paths)
        #expect(program.line() == "ready")
        return program
    }

    /// Runs a command on the store. The status is 124 if the command does not end in time.
    private func moult(_ words: String...) throws -> Shell.Ended {
        try Shell.run(["timeout", "60", BuiltMoult.path()] + words + ["--store", store.path])
    }

    @Test func `a user who may only read cannot block readers and updates`() throws {
        let attacker = try lock(current, try leaseFile(), "\(store.path)/.moult", store.path)
        let read = try moult("sql", "SELECT x FROM food.food")
        #expect(read.status == 0, "\(read)")
        #expect(read.output.contains("FOOD1"))
        #expect(try moult("apply", releases.manifest(2)).status == 0)
        #expect(try moult("sql", "SELECT x FROM food.food").output.contains("FOOD2"))
        #expect(try moult("rollback").status == 0)
        let clean = try moult("clean", "--keep", "1")
        #expect(clean.status == 0, "\(clean)")
        attacker.closeInput()
    }

    @Test
    func `a reader of a store without lease files waits for a short time and names the process that holds the lock`()
        throws
    {
        try removeLeaseFiles()
        #expect(try moult("sql", "SELECT x FROM food.food").status == 0)
        let attacker = try lock(current)
        let read = try moult("sql", "SELECT x FROM food.food")
        #expect(read.status == 75, "\(read)")
        #expect(read.errors.contains("pid \(attacker.pid) (python3"), "\(read)")
        // The suggested command removes the obstacle, although the lock is still held.
        let line = try #require(read.errors.split(separator: "\n").last { $0.contains("moult recover") })
        let command = try #require(line.split(separator: "moult recover").last).trimmingPrefix(" ")
        #expect(command == "--store \(store.path)")
        #expect(try moult("recover").status == 0)
        #expect(try moult("sql", "SELECT x FROM food.food").output.contains("FOOD1"))
        attacker.closeInput()
    }

    @Test func `an update creates the lease files of a store of an older version`() throws {
        try removeLeaseFiles()
        let attacker = try lock(current)
        #expect(try moult("apply", releases.manifest(2)).status == 0)
        #expect(try Files.list("\(store.path)/.moult/leases") == Files.list("\(store.path)/.moult/generations"))
        #expect(try moult("sql", "SELECT x FROM food.food").status == 0)
        attacker.closeInput()
    }

    @Test func `a lease file is read-only, and other users cannot create one`() throws {
        let facts = try #require(try Files.facts(leaseFile()))
        #expect(facts.mode == 0o444)
        let directory = try #require(try Files.facts("\(store.path)/.moult/leases"))
        #expect(directory.mode & 0o022 == 0)
    }

    @Test(.enabled(if: geteuid() == 0, "needs a second user"))
    func `a user who may only read can take a lease, but no lock that blocks one`() throws {
        let attack = """
            import fcntl, os, struct, sys
            lock = lambda kind: struct.pack("hhqqi4x", kind, 0, 0, 0, 0)
            file = os.open(sys.argv[1], os.O_RDONLY)
            fcntl.fcntl(file, fcntl.F_OFD_SETLK, lock(fcntl.F_RDLCK))
            for words in (lambda: os.open(sys.argv[1], os.O_RDWR), lambda: fcntl.fcntl(file, fcntl.F_OFD_SETLK, lock(fcntl.F_WRLCK)),
                          lambda: fcntl.lockf(file, fcntl.LOCK_EX)):
                try: words(); print("taken")
                except OSError as error: print(type(error).__name__, error.errno)
            """
        let ended = try Shell.run([
            "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "python3", "-c", attack, leaseFile(),
        ])
        #expect(ended.output == "PermissionError 13\nOSError 9\nOSError 9\n", "\(ended)")
    }

    @Test(arguments: lockers)
    func `a lease taken by this or an older version of moult keeps its generation, and clean names the process`(
        _ version: String, _ program: String
    ) throws {
        let reader = try Program.python(program, "\(store.path)/.moult")
        #expect(reader.line() == "ready")
        let generation = Files.name(of: try Files.resolved(current))
        try Shell.must(["sed", "-i", #"s/"keep"/"minimumAge": 0, &/"#, "\(store.path)/moult.json"])
        try store.must("apply", "-q", releases.manifest(2))
        let kept = try moult("clean", "--keep", "1")
        #expect(kept.status == 0, "\(kept)")
        #expect(kept.output.replacing("\n", with: " ").contains("in use by pid \(reader.pid) (python3"), "\(kept)")
        #expect(try Files.facts("\(store.path)/.moult/generations/\(generation)") != nil)
        let who = try JSON(parsing: Array(moult("status", "--processes", "--json").output.utf8), source: "status")
        let holder = who["holders"]?.array?.first { $0["pid"]?.integer == Int64(reader.pid) }
        #expect(holder?["uses"]?.array?.map { $0["how"]?.string } == ["leased"], "\(who)")
        reader.closeInput()
        #expect(reader.wait() == 0)
        try store.must("clean", "--keep", "1")
        #expect(try Files.facts("\(store.path)/.moult/generations/\(generation)") == nil)
        #expect(try !Files.list("\(store.path)/.moult/leases").contains(generation))
    }

    private static let lockers = [
        "an older version": """
        import fcntl, os, sys
        held = os.open(sys.argv[1] + "/current", os.O_RDONLY)
        fcntl.flock(held, fcntl.LOCK_SH)
        print("ready"); sys.stdin.read()
        """,
        "this version": """
        import fcntl, os, struct, sys
        held = os.open(sys.argv[1] + "/leases/" + os.path.basename(os.readlink(sys.argv[1] + "/current")), os.O_RDONLY)
        fcntl.fcntl(held, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0, 0, 0))
        print("ready"); sys.stdin.read()
        """,
    ]

    @Test func `an older version of moult sees the leases of this version`() throws {
        // An endless query keeps the lease.
        let reader = try Program([
            BuiltMoult.path(), "sql", "--store", store.path,
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n",
        ])
        // If the test itself tried to lock the file, the reader could miss its lease. So the test asks the kernel
        // first.
        let generation = try Files.resolved(current)
        while try reader.isRunning && LockHolders.of(generation).isEmpty { usleep(1000) }
        func isFree() throws -> Bool { try Shell.run(["flock", "-n", "-x", generation, "true"]).status == 0 }
        #expect(try !isFree())
        reader.signal(SIGTERM)
        #expect(reader.wait() == 128 + SIGTERM)
        #expect(try isFree())
    }

    @Test(arguments: ["pipe", "directory", "link"])
    func `a pipe, directory or link in place of a lease file blocks no reader, and recover replaces it`(_ kind: String)
        throws
    {
        let path = try leaseFile()
        try Files.remove(path)
        switch kind {
        case "pipe": try Shell.must(["mkfifo", path])
        case "directory": try Files.makeDirectory(path)
        default:
            try Files.writeNew([], to: scratch.path("victim"), mode: 0o600)
            try Files.symlink(to: scratch.path("victim"), at: path)
        }
        #expect(try moult("sql", "SELECT x FROM food.food").status == 0)
        #expect(try moult("recover").status == 0)
        #expect(try Files.facts(path)?.kind == .file)
        if kind == "link" { #expect(try Files.facts(scratch.path("victim"))?.mode == 0o600) }
    }

    @Test func `the process that holds the store lock is named at once, and a waiting process can be ended`() throws {
        let attacker = try lock("\(store.path)/.moult/lock")
        let busy = try moult("apply", releases.manifest(2))
        #expect(busy.status == 75)
        #expect(busy.errors.contains("pid \(attacker.pid) (python3"), "\(busy)")
        let waiting = try Program([
            BuiltMoult.path(), "apply", releases.manifest(2), "--wait", "600", "--store", store.path,
        ])
        while try waiting.isRunning && !catchesSIGTERM(waiting.pid) { usleep(1000) }
        waiting.signal(SIGTERM)
        #expect(waiting.wait() != 0)
        attacker.closeInput()
        #expect(try moult("apply", releases.manifest(2)).status == 0)
    }

    private func catchesSIGTERM(_ pid: Int32) throws -> Bool {
        let status = String(decoding: try Files.read("/proc/\(pid)/status", limit: 1 << 16) ?? [], as: UTF8.self)
        let line = status.split(separator: "\n").first { $0.hasPrefix("SigCgt:") }
        let signals = line.flatMap { UInt64($0.dropFirst(7).trimmingPrefix { $0.isWhitespace }, radix: 16) } ?? 0
        return signals & 1 << (UInt64(SIGTERM) - 1) != 0
    }
}
