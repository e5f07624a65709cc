import Moult
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// Readers without a lease open a read-only database by its path while its release is switched again and again.
@Suite(.tags(.thorough)) struct FlipTests {
    /// The number of switches. MOULT_FLIPS=2000 is the documented number, and takes minutes in a debug build.
    static let count = getenv("MOULT_FLIPS").flatMap { Int(String(cString: $0)) } ?? 100

    private static let python = """
        import select, sqlite3, sys
        opened, failed = 0, []
        while not select.select([sys.stdin], [], [], 0)[0]:
            try:
                c = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
                if c.execute("SELECT release FROM food").fetchone()[0] not in (1, 2): failed.append("wrong data")
                c.close(); opened += 1
            except Exception as e: failed.append(str(e))
            if opened == 1: print("ready")
        print(opened, len(failed), failed[:1])
        """

    @Test func `opening a database never fails while releases are switched`() throws {
        let shop = try ConsumerShop()
        let releases = try [1, 2].map { try shop.release($0, writable: false) }
        try shop.store.updateBlocking(to: releases[0])
        let path = "\(shop.root)/food.db"
        let readers = try (0..<2).map { _ in try Program.python(Self.python, path) }
        for reader in readers { #expect(reader.line() == "ready") }
        for flip in 1...Self.count { try shop.store.updateBlocking(to: releases[flip % 2]) }
        for reader in readers {
            reader.closeInput()
            let words = try #require(reader.line()).split(separator: " ")
            #expect(words[1] == "0", "\(words)")
            // The reader must have read during the switches, not only before and after them.
            let opened = try #require(Int(words[0]))
            #expect(opened > Self.count / 10)
        }
    }
}
