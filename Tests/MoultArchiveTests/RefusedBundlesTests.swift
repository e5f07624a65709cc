import MoultArchive
import MoultBasics
import MoultFiles
import Synchronization
import TestSupport
import Testing

/// Damaged bundles of moult, and source files and outputs that fail.
@Suite struct RefusedBundlesTests {
    private func packed() throws -> (scratch: Scratch, frames: [Frame], bytes: [UInt8]) {
        let scratch = try Scratch()
        let frames = try BundleSample.write(to: scratch.path("a"))
        return (scratch, frames, try scratch.read("a"))
    }

    private func error(_ scratch: Scratch, _ frames: [Frame], layout: BundleLayout? = nil) throws -> MoultError {
        let layout = try layout ?? BundleSample.layout()
        let path = scratch.path("a")
        let error = try #require(throws: MoultError.self) {
            try BundleReader(path, layout: layout, frames: frames) {
                try FrameReader(Descriptor(path, .read), frames: frames)
            }.read(threads: 2) { _ in }
        }
        #expect(error.what == "cannot unpack \(path)")
        return error
    }

    @Test func `a truncated bundle is refused`() throws {
        let (scratch, frames, bytes) = try packed()
        for length in [0, 1, 100, bytes.count / 2, bytes.count - 100, bytes.count - 9, bytes.count - 1] {
            try scratch.write("a", Array(bytes[..<length]))
            #expect(try error(scratch, frames).why == "it has no seek table")
        }
        // The bundle lacks bytes in the middle, but its table is intact.
        try scratch.write("a", Array(bytes[..<1000] + bytes[2000...]))
        #expect(try error(scratch, frames).code == .archiveFrames)
    }

    @Test func `extra bytes after a bundle are refused`() throws {
        let (scratch, frames, bytes) = try packed()
        for place in [0, 1000, frames[0].packedSize, bytes.count - 9, bytes.count] {
            try scratch.write("a", bytes[..<place] + [7] + bytes[place...])
            #expect(try error(scratch, frames).code == .archiveFrames)
        }
    }

    @Test func `a bundle whose frames differ from the declared frames is refused`() throws {
        let (scratch, frames, _) = try packed()
        var other = frames
        other[3] = Frame(packedSize: frames[3].packedSize + 1, contentSize: frames[3].contentSize)
        #expect(try error(scratch, other).why == "its frames do not match the declared frames")
        #expect(try error(scratch, Array(frames.dropLast())).why == "its frames do not match the declared members")
        let small = try BundleLayout(members: [("food.db", 5)], modified: 0)
        #expect(try error(scratch, frames, layout: small).why == "its frames do not match the declared members")
    }

    /// The table and the declaration both shift the boundary of a frame by one byte.
    @Test func `a wrong seek table is refused`() throws {
        let (scratch, frames, bytes) = try packed()
        let table = bytes.count - 9 - 8 * frames.count
        var lying = bytes
        var declared = frames
        declared[1] = Frame(packedSize: frames[1].packedSize + 1, contentSize: frames[1].contentSize)
        declared[2] = Frame(packedSize: frames[2].packedSize - 1, contentSize: frames[2].contentSize)
        for (index, frame) in declared.enumerated() {
            for byte in 0..<4 {
                lying[table + 8 * index + byte] = UInt8(truncatingIfNeeded: frame.packedSize >> (8 * byte))
            }
        }
        try scratch.write("a", lying)
        // Both frames next to the boundary are wrong, and the first thread reports this.
        let places = [frames[0].packedSize, frames[0].packedSize + declared[1].packedSize]
        let why = try error(scratch, declared).why
        #expect(places.contains { why?.hasPrefix("the frame at \($0) ") == true }, "\(why ?? "")")
    }

    @Test func `a frame with more or less content than listed is refused`() throws {
        let scratch = try Scratch()
        let path = scratch.path("a")
        for listed in [99, 101] {
            let frames = try FrameWriter.write(level: 1, threads: 1, frameSize: 1000) {
                try Descriptor(path, .append).write($0)
            } body: { writer in
                try writer.write([UInt8](repeating: 1, count: 100))
            }
            // The second half of the entry is the size of the content.
            var bytes = try scratch.read("a")
            bytes[bytes.count - 9 - 4] = UInt8(listed)
            try scratch.write("a", bytes)
            let declared = [Frame(packedSize: frames[0].packedSize, contentSize: listed)]
            let error = try #require(throws: MoultError.self) {
                try FrameReader(Descriptor(path, .read), frames: declared).read(threads: 1) { _, _ in }
            }
            #expect([.archiveFrames, .archiveDamaged].contains(error.code), "\(error)")
            #expect(scratch.run("rm a") == 0)
        }
    }

    @Test func `a bundle with a changed bit is refused`() throws {
        let (scratch, frames, bytes) = try packed()
        let table = bytes.count - 9 - 8 * frames.count - 8
        for place in stride(from: 5, to: table, by: table / 50) {
            var damaged = bytes
            damaged[place] ^= 4
            try scratch.write("a", damaged)
            #expect([.archiveDamaged, .archiveFrames].contains(try error(scratch, frames).code))
        }
    }

    /// Names, sizes and time must match the layout exactly.
    @Test func `a bundle whose headers differ from the declared members is refused`() throws {
        let (scratch, frames, _) = try packed()
        var members = BundleSample.sizes
        members[0].0 = "trash.db"
        let renamed = try BundleLayout(members: members, modified: BundleSample.modified)
        #expect(
            try error(scratch, frames, layout: renamed).why == "its tar headers do not match the declared members")
        let later = try BundleLayout(members: BundleSample.sizes, modified: 1)
        #expect(try error(scratch, frames, layout: later).code == .archiveFrames)
    }

    @Test func `frames that need too much memory are refused`() throws {
        let scratch = try Scratch()
        let path = scratch.path("a")
        let frames = try FrameWriter.write(level: 1, threads: 1, frameSize: 70 << 20) {
            try Descriptor(path, .append).write($0)
        } body: {
            try $0.write([UInt8](repeating: 1, count: 65 << 20))
        }
        let error = try #require(throws: MoultError.self) { try FrameReader(Descriptor(path, .read), frames: frames) }
        #expect(error.code == .archiveMemory)
    }

    private struct Failure: Error, Equatable { let frame: Int }

    /// The first error is thrown, and the workers skip the remaining work.
    @Test(arguments: [1, 2, 4]) func `an error of one worker stops all workers`(threads: Int) throws {
        let scratch = try Scratch()
        let path = scratch.path("a")
        let count = 500
        let frames = try FrameWriter.write(level: 1, threads: 2, frameSize: 10) {
            try Descriptor(path, .append).write($0)
        } body: {
            try $0.write([UInt8](repeating: 1, count: 10 * count))
        }
        let done = Mutex(0)
        let failure = #expect(throws: Failure.self) {
            try FrameReader(Descriptor(path, .read), frames: frames).read(threads: threads) { index, _ in
                if index >= 10 { throw Failure(frame: index) }
                done.withLock { $0 += 1 }
            }
        }
        #expect(try #require(failure).frame < 10 + threads)
        #expect(done.withLock { $0 } == 10)
    }

    @Test func `errors of the callbacks of a bundle writer are reported`() throws {
        let layout = try BundleSample.layout()
        let writer = BundleWriter(layout, level: 1, threads: 2)
        let content = BundleSample.members.map(\.bytes)
        #expect(throws: Failure(frame: 3)) {
            try writer.write(onFrame: { index, _ in if index == 3 { throw Failure(frame: index) } }, output: { _ in }) {
                try content[$0].withUnsafeBytes($1)
            }
        }
        #expect(throws: Failure(frame: -1)) {
            try writer.write(output: { _ in throw Failure(frame: -1) }) { try content[$0].withUnsafeBytes($1) }
        }
        #expect(throws: Failure(frame: -2)) { try writer.write(output: { _ in }) { _, _ in throw Failure(frame: -2) } }
    }

    @Test(arguments: [("more than 3145734 bytes", 1), ("3145733 bytes instead of 3145734", -1)])
    func `a source file whose size changes is refused`(
        found: String, by difference: Int
    ) throws {
        let writer = BundleWriter(try BundleSample.layout(), level: 1, threads: 2)
        let error = try #require(throws: MoultError.self) {
            try writer.write(output: { _ in }) { member, write in
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
        let error = try #require(throws: MoultError.self) { try BundleLayout(members: [(name, 1)], modified: 0) }
        #expect(error.what == "cannot pack the archive")
    }

    @Test func `member names that are equal or differ only in case are not packed`() throws {
        for names in [["a.db", "a.db"], ["a.db", "A.db"]] {
            let error = try #require(throws: MoultError.self) {
                try BundleLayout(members: names.map { ($0, 1) }, modified: 0)
            }
            #expect(error.code == .archiveDuplicate)
        }
    }
}
