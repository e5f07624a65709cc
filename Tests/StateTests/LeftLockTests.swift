import MoultFiles
import TestSupport
import Testing

/// If a command is killed while it starts a child process, the child has a copy of the store lock for a moment.
@Suite struct LeftLockTests {
    let scratch: Scratch
    let store: CopiedStore

    init() throws {
        scratch = try Scratch()
        store = try CopiedStore.make(.idle, at: scratch.path("store"), CopiedStore.Releases())
    }

    /// Takes the lock in a process that ends at once, and whose child keeps a copy of the lock for this many seconds.
    private func leaveLock(seconds: Double) throws {
        try Shell.must([
            "python3", "-c",
            """
            import fcntl, os, sys, time
            lock = os.open(sys.argv[1], os.O_RDWR)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if os.fork() == 0: time.sleep(float(sys.argv[2]))
            """, "\(store.path)/.moult/lock", "\(seconds)",
        ])
    }

    @Test func `a command waits for a lock if the process that took it has ended`() throws {
        try leaveLock(seconds: 1)
        #expect(try FileLock.take("\(store.path)/.moult/lock", .exclusive) == nil)
        try store.must("clean")
    }

    @Test func `a lock of a running process is reported at once`() throws {
        let lock = try #require(try FileLock.take("\(store.path)/.moult/lock", .exclusive))
        let begun = ContinuousClock.now
        let ended = try store.moult(["clean"])
        #expect(ended.status == 75)
        #expect(ContinuousClock.now - begun < .seconds(4))
        withExtendedLifetime(lock) {}
    }
}
