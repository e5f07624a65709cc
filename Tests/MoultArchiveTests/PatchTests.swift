import MoultArchive
import MoultBasics
import MoultFiles
import Synchronization
import TestSupport
import Testing

/// Patches that turn one file into another.
@Suite struct PatchTests {
    let scratch: Scratch

    init() throws { scratch = try Scratch() }

    /// Returns bytes that do not compress; the same seed gives the same bytes.
    private func noise(_ count: Int, seed: UInt64) -> [UInt8] {
        var state = seed
        // Eight bytes at a time, because a debug build is slow.
        let words = [UInt64](unsafeUninitializedCapacity: count / 8 + 1) { buffer, filled in
            for index in 0...count / 8 {
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                buffer[index] = (state ^ state >> 29) &* 0xbf58_476d_1ce4_e5b9
            }
            filled = count / 8 + 1
        }
        return words.withUnsafeBytes { Array($0.prefix(count)) }
    }

    private func file(_ name: String, _ bytes: [UInt8]) throws -> String {
        let path = scratch.path(name)
        try Files.remove(path)
        try Files.writeNew(bytes, to: path)
        return path
    }

    private func make(_ old: String?, _ new: String, threads: Int = 2) throws -> String {
        let output = Mutex<[UInt8]>([])
        try PatchWriter(from: old.map { try Descriptor($0, .read) }, to: Descriptor(new, .read))
            .write(using: PatchMemory(threads: threads)) { bytes in output.withLock { $0 += Array(bytes) } }
        return try file("x.patch", output.withLock { $0 })
    }

    private func apply(_ patch: String, _ old: String?, size: Int) throws -> [UInt8] {
        let result = Mutex([UInt8](repeating: 0, count: size))
        let reader = try PatchReader(
            Descriptor(patch, .read), base: old.map { try Descriptor($0, .read) }, resultSize: size)
        try reader.read(threads: 2) { index, bytes in
            let (piece, offset) = (Array(bytes), reader.layout.pieces[index].offset)
            result.withLock { $0.replaceSubrange(offset..<offset + piece.count, with: piece) }
        }
        return result.withLock { $0 }
    }

    /// Small and empty files, and files of several pieces, each of which refers to the whole old file.
    @Test(
        .tags(.thorough),
        arguments: [
            (0, 10), (10, 0), (1, 1), (100_000, 100_000), (70_000, 300_000), (20 << 20, 36 << 20), (36 << 20, 20 << 20),
        ])
    func `a patch recreates the new file`(oldSize: Int, newSize: Int) throws {
        let before = noise(oldSize, seed: 1)
        // The new file has the old content at different positions, and some new content.
        var after = Array(before.suffix(oldSize / 2) + before.prefix(oldSize / 2) + noise(newSize, seed: 2)).prefix(
            newSize)
        if newSize > 2000 { after.replaceSubrange(1000..<1100, with: noise(100, seed: 3)) }
        let (old, new) = (try file("old", before), try file("new", Array(after)))
        let patch = try make(oldSize == 0 ? nil : old, new)
        #expect(try apply(patch, oldSize == 0 ? nil : old, size: newSize) == Array(after))
        let size = try #require(try Files.facts(patch)?.size)
        // New content does not compress. All old content is found, however far it has moved.
        #expect(size < max(0, newSize - oldSize) + newSize / 50 + 2000, "\(size)")
    }

    @Test func `the bytes of a patch do not depend on the number of threads`() throws {
        let before = noise(18 << 20, seed: 1)
        let (old, new) = (try file("old", before), try file("new", Array(before.dropFirst(5000))))
        let one = try Files.read(make(old, new, threads: 1), limit: 1 << 30)
        #expect(try Files.read(make(old, new, threads: 3), limit: 1 << 30) == one)
    }

    /// Any bit may be wrong, and the patch may be truncated anywhere: the result is an error, or the correct file if
    /// the bit has no effect.
    @Test(.tags(.thorough)) func `a damaged patch gives an error or the correct file`() throws {
        let before = noise(200_000, seed: 1)
        let after = noise(500, seed: 2) + before + noise(500, seed: 3)
        let (old, new) = (try file("old", before), try file("new", after))
        let patch = try #require(try Files.read(make(old, new), limit: 1 << 20))
        for place in stride(from: 0, to: patch.count, by: max(1, patch.count / 50)) {
            var damaged = patch
            damaged[place] ^= 0x10
            let found = try? apply(file("damaged", damaged), old, size: after.count)
            // Some bits have no effect: flags of the seek table, and bits at the end of the compressed data.
            #expect(found == nil || found == after, "\(place)")
            #expect(throws: MoultError.self, "\(place)") {
                try apply(file("cut", Array(patch.prefix(place))), old, size: after.count)
            }
        }
        #expect(throws: MoultError.self) { try apply(file("longer", patch + [0]), old, size: after.count) }
    }

    @Test func `a patch does not recreate the new file from a wrong base, and a wrong size is refused`() throws {
        let before = noise(200_000, seed: 1)
        let after = Array(before.dropFirst(10))
        let (old, new) = (try file("old", before), try file("new", after))
        let patch = try make(old, new)
        let other = try file("other", noise(200_000, seed: 9))
        #expect(try apply(patch, other, size: after.count) != after)
        #expect(throws: MoultError.self) { try apply(patch, old, size: after.count + 1) }
        let error = try #require(throws: MoultError.self) { try apply(patch, old, size: after.count - 1) }
        #expect(error.why == "it is for files of different sizes")
    }

    /// With old files above 2 GiB, each piece refers to the content around its position, within the window of zstd.
    @Test(arguments: [1 << 20, 1 << 31, 3 << 30, 40 << 30])
    func `every piece uses as much of the old file as possible`(baseSize: Int) throws {
        let layout = PatchLayout(baseSize: baseSize, resultSize: baseSize + 5000)
        #expect(layout.pieces.reduce(0) { $0 + $1.count } == baseSize + 5000)
        for piece in layout.pieces {
            #expect(piece.base.count + piece.count <= 1 << 31)
            #expect(piece.base.lowerBound >= 0 && piece.base.upperBound <= baseSize)
            #expect(piece.base.lowerBound % MappedFile.alignment == 0)
            if let split = piece.split {
                #expect(split % MappedFile.alignment == 0 && piece.base.contains(split))
                #expect(split > piece.base.lowerBound)
            }
            // The part of the old file includes the content at the position of the piece.
            #expect(piece.base.contains(min(piece.offset, baseSize - 1)))
        }
    }
}
