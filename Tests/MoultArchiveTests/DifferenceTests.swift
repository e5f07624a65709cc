internal import MoultBasics
import TestSupport
import Testing

@testable import MoultArchive

/// Pieces of patches, which encode the differences from the old file.
@Suite struct DifferenceTests {
    /// Returns content like that of databases: short records of few words, with numbers in between.
    private func records(_ count: Int, _ dice: inout SeededRandom) -> [UInt8] {
        let words = ["rye", "sour", "dried", "smoked", "bread", "plum", "carrot", "herring"]
        var bytes: [UInt8] = []
        for number in 0..<count {
            bytes += [UInt8(truncatingIfNeeded: number >> 8), UInt8(truncatingIfNeeded: number)]
            for _ in 0..<6 { bytes += Array(words.randomElement(using: &dice)?.utf8 ?? "".utf8) }
        }
        return bytes
    }

    /// Adds, removes, changes and moves bytes.
    private func changed(_ bytes: [UInt8], _ times: Int, _ dice: inout SeededRandom) -> [UInt8] {
        var bytes = bytes
        for _ in 0..<times where bytes.count > 50 {
            let place = Int.random(in: 0..<bytes.count - 40, using: &dice)
            let part = place..<place + Int.random(in: 1..<40, using: &dice)
            switch Int.random(in: 0..<5, using: &dice) {
            case 0: bytes.removeSubrange(part)
            case 1: bytes.insert(contentsOf: records(1, &dice), at: place)
            case 2: for at in part { bytes[at] &+= 7 }
            case 3:
                let moved = bytes[part]
                bytes.removeSubrange(part)
                bytes.insert(contentsOf: moved, at: Int.random(in: 0..<bytes.count, using: &dice))
            default: bytes.append(contentsOf: bytes[part])
            }
        }
        return bytes
    }

    private func columns(_ new: [UInt8], _ old: [UInt8], start: Int) -> [UInt8] {
        new.withUnsafeBytes { new in
            old.withUnsafeBytes { old in
                let covers = CoverSearch(new, in: OldContent(old))?.covers(start: start) ?? []
                return DifferenceWriter(covers, of: new, in: old, start: start).bytes
            }
        }
    }

    private func read(_ columns: [UInt8], _ old: [UInt8], start: Int, size: Int) throws -> [UInt8] {
        var piece = [UInt8](repeating: 0, count: size)
        try columns.withUnsafeBytes { columns in
            try old.withUnsafeBytes { old in
                var reader = try DifferenceReader(columns, old: OldBytes(old), start: start)
                try piece.withUnsafeMutableBytes { try reader.read(into: $0) }
            }
        }
        return piece
    }

    /// Covers are read in parts that are at most as large as the window, wherever they begin.
    @Test func `covers longer than the window are read in parts`() throws {
        var dice = SeededRandom(9)
        let old = (0..<300_000).map { _ in UInt8.random(in: 0...255, using: &dice) }
        let new = Array(old[77_777...]) + Array(old[..<200_001]) + Array(old[65_530..<65_570])
        #expect(try read(columns(new, old, start: 0), old, start: 0, size: new.count) == new)
        try old.withUnsafeBytes { memory in
            let bytes = OldBytes(memory)
            for offset in [0, 1, 65_536, 16_383, 299_999, 150_000] {
                let part = try bytes.bytes(at: offset, most: 200_000)
                #expect(
                    (1...(64 << 10)).contains(part.count) && Array(part) == Array(old[offset..<offset + part.count]))
            }
            #expect(throws: ArchiveRefusal.self) { _ = try bytes.bytes(at: 300_000, most: 1) }
        }
    }

    /// The search finds a single cover for unmoved content, so moult can skip the search if the old file has the
    /// content at the same position.
    @Test func `content that did not move is found as a single cover`() throws {
        var dice = SeededRandom(3)
        let old = records(3000, &dice)
        for start in [0, 5000] {
            let piece = Array(old[start...])
            let found = piece.withUnsafeBytes { new in
                old.withUnsafeBytes { CoverSearch(new, in: OldContent($0))?.covers(start: start) }
            }
            #expect(found == [Cover(literals: 0, place: 0, count: piece.count, shift: start)])
            #expect(piece.withUnsafeBytes { new in old.withUnsafeBytes { OldFile($0).has(new, at: start) } })
            #expect(!piece.withUnsafeBytes { new in old.withUnsafeBytes { OldFile($0).has(new, at: start + 1) } })
        }
    }

    @Test func `samples distinguish new content from moved content`() throws {
        var dice = SeededRandom(4)
        let old = (0..<1 << 20).map { _ in UInt8.random(in: 0...255, using: &dice) }
        let other = (0..<1 << 20).map { _ in UInt8.random(in: 0...255, using: &dice) }
        // A tenth is old content, in small parts far from their old positions.
        var mixed = other
        for part in 0..<100 {
            let (place, there) = (part * 10_000, (part * 7919 + 300) % 1_000_000)
            mixed.replaceSubrange(place..<place + 1050, with: old[there..<there + 1050])
        }
        func isUnlike(_ new: [UInt8]) -> Bool {
            new.withUnsafeBytes { new in old.withUnsafeBytes { OldFile($0).isUnlike(new, start: 0) } }
        }
        #expect(isUnlike(other))
        #expect(!isUnlike(mixed))
        #expect(!isUnlike(Array(old.dropFirst(77_777))))
        // Small content is always searched completely.
        #expect(!isUnlike(Array(other.prefix(100_000))))
    }

    @Test func `with less memory, a patch is made with fewer threads and a smaller index`() throws {
        let free = PatchMemory(threads: 8)
        #expect((free.threads, free.index) == (8, 256 << 20))
        for (limit, threads, index) in [(128, 1, 28), (227, 1, 127), (228, 2, 28), (5000, 8, 256)] {
            let memory = PatchMemory(threads: 8, limit: limit << 20)
            #expect((memory.threads, memory.index) == (threads, index << 20), "\(limit)")
        }
        var dice = SeededRandom(6)
        let old = records(3000, &dice)
        let new = changed(old, 10, &dice)
        func covered(_ memory: Int) -> Int {
            let covers = new.withUnsafeBytes { new in
                old.withUnsafeBytes { CoverSearch(new, in: OldContent($0, memory: memory))?.covers(start: 0) }
            }
            return covers?.reduce(0) { $0 + $1.count } ?? 0
        }
        #expect(covered(1 << 20) > new.count * 9 / 10)
        // With a table of 1 KiB, the search may find less of the moved content than with a larger table.
        #expect(covered(1 << 10) <= covered(1 << 20))
    }

    @Test(arguments: 0..<60)
    func `the reader returns the written content`(seed: Int) throws {
        var dice = SeededRandom(seed)
        let old = records([0, 1, 40, 900][seed % 4], &dice)
        let new = changed(old, [0, 1, 3, 30, 200][seed % 5], &dice)
        let start = [0, 0, 17, old.count, old.count + 100][seed / 4 % 5]
        #expect(try read(columns(new, old, start: start), old, start: start, size: new.count) == new)
    }

    /// Ten changes in 30,000 bytes, some of them moves, need little more space than the changes themselves.
    @Test func `similar content has a short encoding`() {
        var dice = SeededRandom(5)
        let old = records(1000, &dice)
        let new = changed(old, 10, &dice)
        #expect(columns(new, old, start: 0).count < 10 * 60)
    }

    /// If all pointers in a page change by the same amount, every other byte differs. Such bytes are encoded as
    /// differences from the old bytes.
    @Test func `numbers that differ by the same amount are covered by the old file`() throws {
        func page(_ offset: Int) -> [UInt8] {
            (0..<100).flatMap {
                [UInt8(truncatingIfNeeded: ($0 * 37 + offset) >> 8), UInt8(truncatingIfNeeded: $0 * 37 + offset)]
            }
        }
        var dice = SeededRandom(3)
        let rest = records(100, &dice)
        let (old, new) = (rest + page(100) + rest, rest + page(106) + rest)
        let covers = try new.withUnsafeBytes { new in
            try old.withUnsafeBytes { try #require(CoverSearch(new, in: OldContent($0))).covers(start: 0) }
        }
        #expect(covers == [Cover(literals: 0, place: 0, count: new.count, shift: 0)])
    }

    /// Columns with a correct checksum may contain any bytes. The result is an error or wrong bytes, but no crash.
    @Test(arguments: 0..<200)
    func `damaged columns are refused or give the declared number of bytes`(seed: Int) throws {
        var dice = SeededRandom(seed)
        let old = records(60, &dice)
        let new = changed(old, 20, &dice)
        var columns = columns(new, old, start: 0)
        for _ in 0..<Int.random(in: 1..<4, using: &dice) {
            columns[Int.random(in: 0..<columns.count, using: &dice)] =
                [0, 1, 0x7f, 0x80, 0xff].randomElement(using: &dice) ?? 0
        }
        if seed % 5 == 0 { columns.removeLast(Int.random(in: 1..<columns.count, using: &dice)) }
        do { #expect(try read(columns, old, start: 0, size: new.count).count == new.count) } catch {
            #expect((error as? ArchiveRefusal)?.code == .archiveDamaged)
        }
        // Decodes the columns with a different old file, or with none.
        _ = try? read(columns, [], start: 0, size: new.count)
        _ = try? read(columns, Array(old.prefix(100)), start: 1 << 40, size: new.count)
    }

    @Test func `a damaged mark or checksum of a frame is refused`() throws {
        var dice = SeededRandom(1)
        let columns = records(300, &dice)
        let frame = try DifferenceFrame.encode(columns)
        #expect(try frame.withUnsafeBytes { try DifferenceFrame.decode($0) } == columns)
        for place in 1..<9 {
            var damaged = frame
            damaged[place] ^= 1
            #expect(throws: ArchiveRefusal.self, "\(place)") {
                try damaged.withUnsafeBytes { try DifferenceFrame.decode($0) }
            }
        }
        // The magic number of zstd, and two bytes, which are too few for a frame.
        #expect(try [0x28, 0xb5, 0x2f, 0xfd].withUnsafeBytes { try DifferenceFrame.decode($0) } == nil)
        #expect(throws: ArchiveRefusal.self) { try [UInt8]([1, 2]).withUnsafeBytes { try DifferenceFrame.decode($0) } }
    }
}
