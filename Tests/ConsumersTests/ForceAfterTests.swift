import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// `--force-after` ends the processes whose locks prevent an update, and no others.
@Suite struct ForceAfterTests {
    let shop: ConsumerShop

    init() throws {
        shop = try ConsumerShop()
        try shop.store.updateBlocking(to: shop.release(1))
        try shop.set("waitForApps", "1")
    }

    /// Opens the pantry, executes the statements, and keeps the transaction open.
    private static let app = """
        import signal, sqlite3, sys
        if sys.argv[2] == "stubborn": signal.signal(signal.SIGTERM, signal.SIG_IGN)
        c = sqlite3.connect(sys.argv[1], isolation_level=None)
        for sql in sys.argv[3:]: c.execute(sql).fetchone()
        print("ready"); sys.stdin.read()
        """

    private func app(_ statements: String..., isStubborn: Bool = false) throws -> Program {
        let words = [shop.pantry, isStubborn ? "stubborn" : ""] + statements
        let program = try Program(["python3", "-u", "-c", Self.app] + words)
        #expect(program.line() == "ready")
        return program
    }

    private func apply(_ options: String...) throws -> Shell.Ended {
        try Shell.run([BuiltMoult.path(), "apply", "--store", shop.root] + options + [shop.release(2)])
    }

    private var installed: String { get throws { try shop.value(shop.pantry, "SELECT release FROM pantry") } }

    @Test(arguments: [
        ["BEGIN", "SELECT * FROM pantry"], ["BEGIN IMMEDIATE"], ["BEGIN EXCLUSIVE"],
        ["PRAGMA journal_mode=WAL", "BEGIN IMMEDIATE"],
    ])
    func `a process that keeps a transaction open is named, and is ended with the option`(_ statements: [String]) throws
    {
        let program = try Program(["python3", "-u", "-c", Self.app, shop.pantry, ""] + statements)
        #expect(program.line() == "ready")
        let idle = try app()
        let refused = try apply()
        #expect(refused.status == 75, "\(refused)")
        #expect(refused.errors.contains("pid \(program.pid) ("), "\(refused.errors)")
        #expect(refused.errors.contains(") has locked it\n"), "\(refused.errors)")
        #expect(refused.errors.contains("--force-after SECONDS"), "\(refused.errors)")
        #expect(program.isRunning)
        let forced = try apply("--force-after", "0")
        #expect(forced.status == 0, "\(forced)")
        #expect(forced.errors.contains("pid \(program.pid) ("), "\(forced.errors)")
        #expect(forced.errors.contains("blocks the update; moult sends SIGTERM to this process"), "\(forced.errors)")
        #expect(!program.isRunning)
        #expect(idle.isRunning)
        #expect(try installed == "2")
        // Only the refused update is recorded as failed, if it was planned at all.
        #expect(try History.read(shop.layout).entries.count { $0.outcome == .failed } <= 1)
    }

    @Test func `a process that ignores SIGTERM is killed`() throws {
        let program = try app("BEGIN", "SELECT * FROM pantry", isStubborn: true)
        let forced = try apply("--force-after", "0")
        #expect(forced.status == 0 && forced.errors.contains("moult sends SIGKILL to this process"), "\(forced)")
        #expect(!program.isRunning)
        #expect(try installed == "2")
    }

    @Test func `a process that blocks no update is not ended`() throws {
        let reader = try app("PRAGMA journal_mode=WAL", "BEGIN", "SELECT * FROM pantry")
        let forced = try apply("--force-after", "0")
        #expect(forced.status == 0 && !forced.errors.contains("moult sends"), "\(forced)")
        #expect(reader.isRunning)
        #expect(try installed == "2")
    }

    /// The lock belongs to an open file, and the kernel's table has no process for it.
    @Test func `the message says that the process cannot be found`() throws {
        let program = try Program.python(
            """
            import fcntl, os, struct, sys
            file = os.open(sys.argv[1], os.O_RDONLY)
            fcntl.fcntl(file, 37, struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0x40000002, 510, 0))
            print("ready"); sys.stdin.read()
            """, shop.pantry)
        #expect(program.line() == "ready")
        let forced = try apply("--force-after", "0")
        #expect(forced.status == 75, "\(forced)")
        #expect(forced.errors.contains("moult cannot find the process that has locked it"), "\(forced.errors)")
        #expect(program.isRunning)
        #expect(try installed == "1")
    }
}
