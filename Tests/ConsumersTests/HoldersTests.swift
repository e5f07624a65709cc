import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// The processes that use a store, tested with real processes.
@Suite struct HoldersTests {
    let shop: ConsumerShop

    init() throws {
        shop = try ConsumerShop()
        try shop.store.updateBlocking(to: shop.release(1))
    }

    private static let opener = """
        import sqlite3, sys
        c = sqlite3.connect(sys.argv[1], isolation_level=None)
        for sql in sys.argv[2:]: c.execute(sql).fetchone()
        print("ready"); sys.stdin.read()
        """

    private func uses(of program: Program) throws -> [Holders.Use] {
        try Holders(of: StoreSnapshot(shop.layout)).holders.first { $0.process.pid == program.pid }?.uses ?? []
    }

    /// Processes of a server, each with a lease on the store and its database open.
    private static let server = """
        import fcntl, glob, os, signal, struct, subprocess, sys
        store, count = sys.argv[1], int(sys.argv[2])
        ready, done = os.pipe()
        for _ in range(count):
            if os.fork() == 0:
                for standard in range(3): os.dup2(os.open("/dev/null", os.O_RDWR), standard)
                os.closerange(done + 1, 20)
                lease = os.open(glob.glob(store + "/.moult/leases/*")[0], os.O_RDONLY)
                os.open(store + "/food.db", os.O_RDONLY)
                # struct flock: a read lock on the whole file, of this descriptor.
                fcntl.fcntl(lease, 37, struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0, 0, 0))
                os.write(done, b"x")
                signal.pause()
        while count: count -= len(os.read(ready, count))
        print(subprocess.run(["strace", "-f", "-c", "-o", "calls", *sys.argv[3:]], stdout=subprocess.PIPE, text=True).stdout.count("server.py"))
        """

    /// The time grows with the number of system calls for each process, so this is what must stay small.
    @Test(
        .tags(.thorough), .enabled(if: geteuid() == 0, "process namespaces need root"),
        arguments: ["status --processes", "status --json"])
    func `few system calls are made for each process that uses the store`(_ verb: String) throws {
        try shop.scratch.write("server.py", Self.server)
        func calls(_ count: Int, _ kind: String) throws -> Int {
            let found = try shop.scratch.must(
                """
                unshare -pfm --mount-proc python3 server.py \(shop.root) \(count) moult \(verb) --store \(shop.root)
                awk '/\(kind)$/ { sum += $4 } END { print sum }' calls
                """
            ).split(separator: "\n").map { Int($0) }
            #expect(found.first == count)
            return try #require(found.last ?? nil)
        }
        #expect(try (calls(120, "total") - calls(20, "total")) / 100 <= 25)
        #expect(try (calls(120, "readlinkat") - calls(20, "readlinkat")) / 100 <= 2)
    }

    @Test func `an unused store has no holders`() throws {
        #expect(try Holders(of: StoreSnapshot(shop.layout)).holders == [])
    }

    @Test(arguments: [
        ("open", ["SELECT * FROM pantry"]),
        ("reading", ["BEGIN", "SELECT * FROM pantry"]),
        ("writing", ["BEGIN IMMEDIATE"]),
        ("open", ["PRAGMA journal_mode=WAL", "SELECT * FROM pantry"]),
        ("reading", ["PRAGMA journal_mode=WAL", "BEGIN", "SELECT * FROM pantry"]),
        ("writing", ["PRAGMA journal_mode=WAL", "BEGIN IMMEDIATE"]),
    ])
    func `a process that uses a writable database is listed with its activity`(_ how: String, _ statements: [String])
        throws
    {
        let program = try Program(["python3", "-u", "-c", Self.opener, shop.pantry] + statements)
        #expect(program.line() == "ready")
        let uses = try uses(of: program)
        #expect(uses.map(\.name) == ["pantry"])
        #expect(uses.first?.how.rawValue == how)
        #expect(uses.first?.path == shop.pantry)
    }

    @Test func `a process that has an old read-only database open is listed with its generation`() throws {
        let program = try Program.python(Self.opener, "\(shop.root)/food.db", "SELECT * FROM food")
        #expect(program.line() == "ready")
        let first = try shop.store.lease().generation
        try shop.store.updateBlocking(to: shop.release(2))
        let uses = try uses(of: program)
        #expect(uses.map(\.name) == ["food"])
        #expect(uses.first?.generation == first)
    }

    /// A server that keeps a file open after an update continues to serve old data.
    @Test func `apply names the processes that keep an older release open`() throws {
        let server = try Program.python(Self.opener, "\(shop.root)/food.db", "SELECT * FROM food")
        #expect(server.line() == "ready")
        // The command must name neither this process, which has a lease, nor a process that has a file of the installed release
        // open.
        let lease = try shop.store.lease()
        let other = try Program.python(Self.opener, "\(shop.root)/user.db", "SELECT * FROM note")
        #expect(other.line() == "ready")
        let words = ["--store", shop.root]
        let next = try Shell.run([BuiltMoult.path(), "apply", shop.release(2)] + words)
        #expect(next.status == 0)
        #expect(
            next.errors.contains("pid \(server.pid) (python3") && next.errors.contains("still has the old food open"),
            "\(next)")
        #expect(!next.errors.contains("pid \(other.pid)") && !next.errors.contains("pid \(getpid())"), "\(next)")
        let again = try Shell.run([BuiltMoult.path(), "apply", "--json", shop.release(3)] + words)
        let line = try #require(again.output.split(separator: "\n").last)
        #expect(again.output.contains("\"event\":\"warning\""))
        let result = try JSON(parsing: Array(line.utf8), source: "result")
        let outdated = try #require(result["outdated"]?.array)
        #expect(outdated.map { $0["pid"]?.integer } == [Int64(server.pid)])
        #expect(outdated.first?["databases"]?.array?.map(\.string) == ["food"])
        server.closeInput()
        #expect(server.wait() == 0)
        let last = try Shell.run([BuiltMoult.path(), "apply", "--json", shop.release(4)] + words)
        #expect(!last.output.contains("outdated") && last.status == 0, "\(last)")
        withExtendedLifetime(lease) {}
    }

    @Test func `each of many readers is listed once, even among many locks on other files`() throws {
        let readers = try Program.python(
            """
            import fcntl, os, sqlite3, sys
            for number in range(60):
                end, ours = os.pipe()
                if os.fork() == 0:
                    for name in range(20):
                        fcntl.flock(os.open(f"{sys.argv[2]}/{number}-{name}", os.O_RDWR | os.O_CREAT), fcntl.LOCK_EX)
                    c = sqlite3.connect(sys.argv[1], isolation_level=None)
                    for sql in ["BEGIN", "SELECT count(*) FROM pantry"] if number else ["SELECT count(*) FROM pantry"]:
                        c.execute(sql).fetchone()
                    again = [os.open(sys.argv[1], os.O_RDONLY) for _ in range(5)]
                    os.write(ours, b"x")
                    os.close(ours)
                    sys.stdin.read()
                    os._exit(0)
                os.close(ours)
                os.read(end, 1)
            print("ready")
            sys.stdin.read()
            """, shop.pantry, shop.scratch.directory("others"))
        #expect(readers.line() == "ready")
        let said = try BuiltMoult.run("status", "--processes", "--store", shop.root, "--json")
        #expect(said.status == 0)
        let holders = try #require(try JSON(parsing: Array(said.output.utf8), source: "status")["holders"]?.array)
        #expect(holders.count == 60)
        #expect(holders.allSatisfy { $0["uses"]?.array?.count == 1 && $0["started"]?.string != nil })
        let does = holders.compactMap { $0["uses"]?.array?.first?["how"]?.string }
        #expect(does.filter { $0 == "reading" }.count == 59 && does.filter { $0 == "open" }.count == 1, "\(does)")
        #expect(Set(holders.compactMap { $0["pid"]?.integer }).count == 60)
    }

    @Test func `a lease and the lock of the store are listed`() throws {
        let flock = """
            import fcntl, os, sys
            for path in sys.argv[1:]: fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_SH)
            print("ready"); sys.stdin.read()
            """
        let generation = try shop.store.lease().generation
        let layout = try shop.layout
        let program = try Program.python(flock, layout.generation(generation), layout.lock)
        #expect(program.line() == "ready")
        #expect(
            try Set(uses(of: program).map { "\($0.how.rawValue) \($0.name)" }) == [
                "leased \(generation)", "updating \(layout.lock)",
            ])
    }

    @Test func `a process that has a replaced file open is listed`() throws {
        let program = try Program.python(Self.opener, shop.pantry, "SELECT * FROM pantry")
        #expect(program.line() == "ready")
        try Files.rename(shop.pantry, to: shop.scratch.path("aside"))
        try Shell.must(["cp", shop.scratch.path("aside"), shop.pantry])
        try Files.rename(shop.scratch.path("aside"), to: "\(shop.root)/aside")
        try Files.remove("\(shop.root)/aside")
        #expect(try uses(of: program).map(\.what) == [.gone])
    }

    @Test func `moult status --processes lists the process ID, the command line and the age`() throws {
        let program = try Program.python(Self.opener, shop.pantry, "BEGIN IMMEDIATE")
        #expect(program.line() == "ready")
        let before = try Tree(shop.root)
        let said = try BuiltMoult.run("status", "--processes", "--store", shop.root, "--json")
        #expect(said.status == 0)
        let holder = try JSON(parsing: Array(said.output.utf8), source: "status")["holders"]?.array?.first
        #expect(holder?["pid"]?.integer == Int64(program.pid))
        #expect(holder?["command"]?.string?.contains("python3 -u -c") == true)
        let started = try #require(holder?["started"]?.string.flatMap { Timestamp($0) })
        // The kernel counts start times from the boot time, which is known only to the second.
        #expect(abs(started.seconds - Timestamp.now.seconds) < 120)
        #expect(holder?["uses"]?.array?.first?["how"]?.string == "writing")
        let text = try BuiltMoult.run("status", "--processes", "--store", shop.root).output
        #expect(text.contains("\(program.pid)"))
        #expect(text.contains("writing"))
        #expect(try Tree(shop.root) == before)
    }

    @Test(.enabled(if: getuid() == 0))
    func `moult status --processes tells an ordinary user that it cannot see every process`()
        throws
    {
        let program = try Program.python(Self.opener, shop.pantry, "BEGIN IMMEDIATE")
        #expect(program.line() == "ready")
        try Files.setMode(shop.scratch.path, 0o755)
        let said = try Shell.run(
            [
                "setpriv", "--reuid=65534", "--clear-groups", BuiltMoult.path(), "status", "--processes", "--store",
                shop.root,
            ])
        #expect(said.status == 0, "\(said.errors)")
        #expect(said.output.contains("run the command as root"))
        // The process is still listed, because every user can see its lock in the kernel's table.
        #expect(said.output.contains("\(program.pid)"))
    }
}
