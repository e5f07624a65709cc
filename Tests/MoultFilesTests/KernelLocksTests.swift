import MoultLibc
import TestSupport
import Testing

@testable import MoultFiles

/// The kernel returns its table of locks page by page, so a single reading of the table can miss a lock.
struct KernelLocksTests {
    private func table(_ inodes: some Sequence<Int>) -> String {
        inodes.map { "1: FLOCK  ADVISORY  READ  \($0) fe:00:\($0) 0 EOF\n" }.joined()
    }

    private func pids(_ tables: [String]) throws -> (found: Set<Int32>, readings: Int) {
        var readings = 0
        let locks = KernelLocks {
            defer { readings += 1 }
            return tables[min(readings, tables.count - 1)]
        }
        return (Set(locks.all.map(\.pid)), readings)
    }

    @Test func `a lock that one reading of the kernel table misses is found`() throws {
        let whole = table(1...200)
        let found = try pids([table((1...200).filter { $0 != 150 }), whole])
        #expect(found.found == Set(1...200))
        #expect(try pids([whole, table((1...200).filter { $0 != 150 }), whole]).found == Set(1...200))
    }

    @Test func `a lock table of one page is read once, and a longer table until it stays the same`() throws {
        #expect(try pids([table(1...20)]).readings == 1)
        #expect(try pids([table(1...200)]).readings == 2)
        // If locks appear and disappear in each reading, moult stops after some readings.
        #expect(try pids((0..<50).map { table($0 * 200 + 1...$0 * 200 + 200) }).readings == 9)
    }

    @Test func `locks on a file with the same inode on another device are ignored`() throws {
        let scratch = try Scratch()
        let path = try scratch.write("file", "x")
        let facts = try #require(try Files.facts(path))
        let lock = try #require(try FileLock.take(path, .shared))
        let lines = String(decoding: try Files.read("/proc/locks", limit: 1 << 22) ?? [], as: UTF8.self)
        let own = try #require(lines.split(separator: "\n").first { $0.contains(":\(facts.inode) ") })
        let other = "7: FLOCK  ADVISORY  WRITE 77 ff:ff:\(facts.inode) 0 EOF"
        let longer = "8: FLOCK  ADVISORY  WRITE 88 ff:ff:1\(facts.inode) 0 EOF"
        let locks = KernelLocks(table: [longer, other, String(own)].joined(separator: "\n"))
        #expect(try locks.held(on: facts, at: path).map(\.pid) == [ProcessFacts.ownPID])
        withExtendedLifetime(lock) {}
    }

    @Test func `a lock that is held is found while other locks appear and disappear`() throws {
        let scratch = try Scratch()
        let held = scratch.path("held")
        try Files.writeNew([], to: held)
        let lock = try #require(try FileLock.take(held, .shared))
        let others = try Program.python(
            """
            import fcntl, os, random, sys
            files = [os.open(f"{sys.argv[1]}/{i}", os.O_RDWR | os.O_CREAT) for i in range(300)]
            print("ready")
            while True:
                some = random.sample(files, random.randrange(50, 300))
                for f in some: fcntl.flock(f, fcntl.LOCK_SH)
                for f in some: fcntl.flock(f, fcntl.LOCK_UN)
            """, scratch.path(""))
        #expect(others.line() == "ready")
        for _ in 0..<250 { #expect(try LockHolders.of(held).map(\.pid) == [ProcessFacts.ownPID]) }
        others.signal(SIGKILL)
        _ = others.wait()
        withExtendedLifetime(lock) {}
    }
}
