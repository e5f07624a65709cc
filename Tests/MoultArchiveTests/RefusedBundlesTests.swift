import MoultArchive
import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Damaged bundles of moult, which an app without the command reads itself, and source files and outputs that fail.
@Suite struct RefusedBundlesTests {
    private func packed() throws -> (scratch: Scratch, bytes: [UInt8]) {
        let scratch = try Scratch()
        try BundleSample.write(to: scratch.path("a.tar.zst"))
        return (scratch, try scratch.read("a.tar.zst"))
    }

    private func error(_ scratch: borrowing Scratch, _ bytes: [UInt8]) throws -> MoultError {
        try scratch.write("a.tar.zst", bytes)
        let path = scratch.path("a.tar.zst")
        let error = try #require(throws: MoultError.self) { try BundleSample.read(path) }
        #expect(error.what == "cannot unpack \(path)")
        return error
    }

    @Test func `a truncated bundle is refused`() throws {
        let (scratch, bytes) = try packed()
        for length in [0, 100, bytes.count / 2, bytes.count - 100, bytes.count - 1] {
            #expect(try error(scratch, Array(bytes[..<length])).code == .archiveCut)
        }
    }

    @Test func `extra bytes in or after a bundle are refused`() throws {
        let (scratch, bytes) = try packed()
        for place in [1000, bytes.count - 9, bytes.count] {
            let code = try error(scratch, bytes[..<place] + [7] + bytes[place...]).code
            #expect([.archiveDamaged, .archiveCut].contains(code), "\(place)")
        }
        #expect(scratch.run("printf more | zstd -q > more.zst") == 0)
        #expect(try error(scratch, bytes + scratch.read("more.zst")).code == .archiveGarbage)
    }

    /// zstd ignores a few bits.
    @Test func `a bundle with a changed bit is refused, or has the packed files`() throws {
        let (scratch, bytes) = try packed()
        var refused = 0
        for place in stride(from: 5, to: bytes.count, by: bytes.count / 50) {
            var damaged = bytes
            damaged[place] ^= 4
            try scratch.write("a.tar.zst", damaged)
            do {
                let found = try BundleSample.read(scratch.path("a.tar.zst"))
                #expect(found.map(\.bytes) == BundleSample.members.map(\.bytes))
            } catch is MoultError { refused += 1 }
        }
        #expect(refused > 40)
    }

    /// Only the exact headers of `pack` are read without a sandbox.
    @Test(arguments: [
        "tar -cf b.tar x", "tar --format=pax -cf b.tar x", "bsdtar -cf b.tar x", "tar -cf b.tar -C .. /etc/hostname",
        "echo nonsense > b.tar", "head -c 5000 /dev/zero | tr '\\0' x > b.tar",
    ])
    func `the archives of other programs are not read`(command: String) throws {
        let scratch = try Scratch()
        try scratch.write("x", [1, 2, 3])
        _ = scratch.run(command)
        #expect(scratch.run("zstd -q b.tar -o a.tar.zst") == 0)
        let path = scratch.path("a.tar.zst")
        let error = try #require(throws: MoultError.self) { try BundleSample.read(path) }
        #expect([.archiveKind, .archiveCut].contains(error.code))
    }

    @Test func `a bundle that needs a window of more than 16 MiB is refused`() throws {
        let scratch = try Scratch()
        #expect(scratch.run("head -c 40000000 /dev/zero | zstd -q --long=25 > a.tar.zst") == 0)
        let path = scratch.path("a.tar.zst")
        #expect(try #require(throws: MoultError.self) { try BundleSample.read(path) }.code == .archiveDamaged)
    }

    private struct Failure: Error, Equatable { let number: Int }

    @Test func `errors of the callbacks of a writer are reported`() throws {
        let content = BundleSample.members.map(\.bytes)
        #expect(throws: Failure(number: 1)) {
            try BundleSample.writer().write(output: { _ in throw Failure(number: 1) }) {
                try content[$0].withUnsafeBytes($1)
            }
        }
        #expect(throws: Failure(number: 2)) {
            try BundleSample.writer().write(output: { _ in }) { _, _ in throw Failure(number: 2) }
        }
    }

    @Test(arguments: [("more than 3145734 bytes", 1), ("3145733 bytes instead of 3145734", -1)])
    func `a source file whose size changes is refused`(
        found: String, by difference: Int
    ) throws {
        let error = try #require(throws: MoultError.self) {
            try BundleSample.writer().write(output: { _ in }) { member, write in
                var bytes = BundleSample.members[member].bytes
                if member == 1 { if difference > 0 { bytes.append(0) } else { bytes.removeLast() } }
                try bytes.withUnsafeBytes(write)
            }
        }
        #expect(
            "\(error)"
                == "cannot pack food.db: moult read \(found) from the file. Stop the programs that write to the file, then pack "
                + "again.")
    }

    @Test(arguments: ["../x", "a b", "x.db-wal", "/x", String(repeating: "x", count: 101)])
    func `invalid member names are not packed`(name: String) throws {
        let error = try #require(throws: MoultError.self) {
            try ArchiveWriter(.tar(.zstd), members: [(name, 0)], modified: 0).write(output: { _ in }) { _, _ in }
        }
        #expect(error.what == "cannot pack the archive")
    }

    @Test func `member names that are equal or differ only in case are not packed`() throws {
        for names in [["a.db", "a.db"], ["a.db", "A.db"]] {
            let error = try #require(throws: MoultError.self) {
                try ArchiveWriter(.tar(.zstd), members: names.map { ($0, 1) }, modified: 0)
            }
            #expect(error.code == .archiveDuplicate)
        }
    }
}
