import MoultLibc
import TestSupport
import Testing

@testable import MoultFiles

/// Locks that readers hold, and that no process without write permission can block.
@Suite struct ReadLockTests {
    private let scratch: Scratch
    private let path: String

    init() throws {
        scratch = try Scratch()
        path = try scratch.write("lease", "")
    }

    private func isTaken() throws -> Bool { if case .taken = try ReadLock.take(path) { true } else { false } }

    #if MOULT_PORTABLE
        private static let lockCall = "flock"
    #else
        private static let lockCall = "lockf"
    #endif

    /// Starts a process that holds a lock on the file, until its input is closed.
    private func holder(_ kind: String) throws -> Program {
        let program = try Program.python(
            """
            import fcntl, sys
            file = open(sys.argv[1], "r+")
            fcntl.\(Self.lockCall)(file, fcntl.\(kind))
            print("ready")
            sys.stdin.readline()
            """, path)
        try #require(program.line() == "ready")
        return program
    }

    @Test func `a lock is held until its object is released`() throws {
        #expect(try !ReadLock.isHeld(path))
        do {
            guard case .taken(let lock) = try ReadLock.take(path) else {
                Issue.record("the lock was not taken")
                return
            }
            #expect(try ReadLock.isHeld(path))
            #expect(try lock.facts().isSameFile(Files.facts(path)))
            // A second lock on the same file does not release the first one.
            #expect(try isTaken())
            #expect(try ReadLock.isHeld(path))
            withExtendedLifetime(lock) {}
        }
        #expect(try !ReadLock.isHeld(path))
    }

    @Test func `locks of several readers do not exclude each other`() throws {
        let reader = try holder("LOCK_SH")
        #expect(try isTaken())
        #expect(try ReadLock.isHeld(path))
        reader.closeInput()
        reader.wait()
        #expect(try !ReadLock.isHeld(path))
    }

    @Test func `a writer blocks the lock until it ends`() throws {
        let writer = try holder("LOCK_EX")
        guard case .blocked = try ReadLock.take(path) else {
            Issue.record("not blocked")
            return
        }
        writer.signal(SIGKILL)
        writer.wait()
        #expect(try isTaken())
    }

    @Test(arguments: ["nothing", "a directory", "a pipe"])
    func `without a regular file, a lock is impossible and not held`(_ what: String) throws {
        try Files.remove(path)
        switch what {
        case "a directory": try Files.ensureDirectory(path)
        case "a pipe": #expect(mkfifo(path, 0o600) == 0)
        default: break
        }
        guard case .impossible = try ReadLock.take(path) else {
            Issue.record("a lock on \(what)")
            return
        }
        #expect(try !ReadLock.isHeld(path))
    }
}
