import MoultArchive
import MoultBasics
import TestSupport
import Testing

/// Zip and 7z files whose directory is wrong or incomplete, or lists other things than plain files.
@Suite(.tags(.thorough)) struct RefusedLayoutsTests {
    private let members = ["food.db": 4, "user.db": 2]

    /// Makes a zip archive with two stored files at known positions: food.db at 0, user.db at 41.
    private func stored() throws -> (scratch: Scratch, bytes: [UInt8]) {
        let scratch = try Scratch()
        try scratch.write("food.db", Array("food".utf8))
        try scratch.write("user.db", Array("me".utf8))
        #expect(scratch.run("zip -q -0 -X a.zip food.db user.db") == 0)
        #expect(try scratch.unpack("a.zip", members: members) == contents)
        let bytes = try scratch.read("a.zip")
        #expect(Array(bytes[41...].prefix(4)) == Array("PK\u{3}\u{4}".utf8))
        return (scratch, bytes)
    }

    private let contents = ["food.db": Array("food".utf8), "user.db": Array("me".utf8)]
    private let directory = 41 + 39
    private let end = 41 + 39 + 2 * (46 + 7)

    private func refusal(_ scratch: Scratch, _ bytes: [UInt8]) throws -> MoultError {
        try scratch.write("a.zip", bytes)
        return try scratch.refusal("a.zip", members: members)
    }

    /// A self-extracting archive begins with a program, which the offsets may or may not include.
    @Test(arguments: ["PK, but a program", "MZ\0\0", "#!/bin/sh\nexit\n", "\0\0\0\0"])
    func `bytes before the archive are accepted`(front: String) throws {
        let (scratch, bytes) = try stored()
        try scratch.write("a.zip", Array(front.utf8) + bytes)
        #expect(try scratch.unpack("a.zip", members: members) == contents)
        #expect(scratch.run("zip -q -A a.zip && unzip -tq a.zip") == 0)
        #expect(try scratch.unpack("a.zip", members: members) == contents)
    }

    /// The markers of an archive that was prepared for splitting, but has only one part.
    @Test(arguments: ["PK00", "PK\u{7}\u{8}"]) func `the marker of a split archive is accepted`(marker: String) throws {
        let (scratch, bytes) = try stored()
        try scratch.write("a.zip", Array(marker.utf8) + bytes)
        #expect(try scratch.unpack("a.zip", members: members) == contents)
        #expect(scratch.run("zip -q -A a.zip && unzip -tq a.zip") == 0)
        #expect(try scratch.unpack("a.zip", members: members) == contents)
    }

    /// A reader that starts at the beginning would unpack an entry that the directory does not list.
    @Test(arguments: ["", "PK00", "PK\u{7}\u{8}"]) func `an entry before the archive is refused`(marker: String) throws
    {
        let (scratch, bytes) = try stored()
        let error = try refusal(scratch, Array(marker.utf8) + bytes[..<41] + bytes)
        #expect(error.code == .archiveGarbage)
        #expect(error.why == "the bytes at 0 do not belong to any entry of the zip archive")
    }

    /// A reader that uses the offset in the end record unchanged would find another directory before the archive.
    @Test func `a second directory before the archive is refused`() throws {
        let (scratch, bytes) = try stored()
        var other = [UInt8](repeating: 0x20, count: directory) + bytes[directory..<end]
        other.replaceSubrange(directory + 46..<directory + 53, with: "evil.db".utf8)
        let error = try refusal(scratch, other + bytes)
        #expect(error.code == .archiveDamaged)
        #expect(error.why == "the zip directory is damaged: it appears twice")
    }

    @Test func `NULs between the entries and the directory are accepted`() throws {
        let (scratch, bytes) = try stored()
        var padded = Array(bytes[..<41]) + [0, 0, 0] + Array(bytes[41..<directory]) + [0, 0]
        padded += Array(bytes[directory...])
        padded[directory + 5 + 53 + 42] += 3
        padded[end + 5 + 16] += 5
        try scratch.write("a.zip", padded)
        #expect(try scratch.unpack("a.zip", members: members) == contents)
        #expect(scratch.run("unzip -tq a.zip && python3 -m zipfile -t a.zip") == 0)
    }

    @Test func `bytes between the entries and the directory are refused`() throws {
        let (scratch, bytes) = try stored()
        var gap = Array(bytes[..<directory]) + [1, 2, 3] + Array(bytes[directory...])
        // The offset of the directory in the end record.
        gap[end + 3 + 16] += 3
        try scratch.write("a.zip", gap)
        #expect(scratch.run("unzip -tq a.zip") == 0)
        let error = try refusal(scratch, gap)
        #expect(error.code == .archiveGarbage)
        #expect(error.why == "the bytes at 80 do not belong to any entry of the zip archive")
    }

    @Test(arguments: [1, 22, 300, 65_535]) func `an archive comment is accepted`(size: Int) throws {
        let (scratch, bytes) = try stored()
        var commented = bytes + [UInt8](repeating: 0x50, count: size)
        commented.replaceSubrange(bytes.count - 2..<bytes.count, with: [UInt8(size & 0xff), UInt8(size >> 8)])
        try scratch.write("a.zip", commented)
        #expect(try scratch.unpack("a.zip", members: members) == contents)
    }

    /// The comment contains a directory that only some readers would find.
    @Test func `a second archive in the comment is refused`() throws {
        let (scratch, bytes) = try stored()
        var twice = bytes + bytes
        twice[bytes.count - 2] = UInt8(bytes.count)
        #expect(try refusal(scratch, twice).why == "the bytes at 0 do not belong to any entry of the zip archive")
        // The end record of that archive, whole and with one more byte.
        for more: [UInt8] in [[], [0x20]] {
            twice = bytes + bytes[end...] + more
            twice[bytes.count - 2] = UInt8(22 + more.count)
            let error = try refusal(scratch, twice)
            #expect([.archiveDamaged, .archiveGarbage, .archiveCut].contains(error.code), "\(error)")
        }
    }

    /// The directory and the entry itself have different names, so two programs would see different archives.
    @Test func `two names for one entry are refused`() throws {
        let (scratch, bytes) = try stored()
        var other = bytes
        other.replaceSubrange(30..<37, with: "evil.db".utf8)
        #expect(try refusal(scratch, other).code == .archiveUndeclared)
        other = bytes
        other.replaceSubrange(directory + 46..<directory + 53, with: "evil.db".utf8)
        let error = try refusal(scratch, other)
        #expect(error.code == .archiveDamaged)
        #expect(error.why == "the zip directory is damaged: an entry does not match its local header")
    }

    @Test func `two entries at the same position are refused`() throws {
        let (scratch, bytes) = try stored()
        var twice = bytes
        // The offset of the second entry in the directory.
        twice.replaceSubrange(directory + 53 + 42..<directory + 53 + 46, with: [0, 0, 0, 0])
        // libarchive reads an offset only once, so the second entry is left over.
        #expect(try refusal(scratch, twice).why == "the bytes at 41 do not belong to any entry of the zip archive")
        // The directory lists the same entry twice.
        var same = bytes
        same.replaceSubrange(directory + 53..<end, with: bytes[directory..<directory + 53])
        #expect(try refusal(scratch, same).why == "the bytes at 41 do not belong to any entry of the zip archive")
        // The same, without the entry that is left over.
        var listed = Array(bytes[..<41] + bytes[directory..<directory + 53] + bytes[directory..<directory + 53])
        listed += bytes[end...]
        listed[listed.count - 6] = 41
        try scratch.write("a.zip", listed)
        let error = try scratch.refusal("a.zip", members: ["food.db": 4])
        #expect(error.why == "the zip directory is damaged: it lists an entry twice, or not all of them")
    }

    /// The content of a stored entry is itself an entry, and the directory lists both.
    @Test func `an entry inside another entry is refused`() throws {
        let (scratch, bytes) = try stored()
        let inner = Array(bytes[41..<directory])
        try scratch.write("food.db", inner)
        #expect(scratch.run("zip -q -0 -X b.zip food.db") == 0)
        let outer = try scratch.read("b.zip")
        let start = 37 + inner.count
        var nested = Array(outer[..<(start + 53)]) + bytes[(directory + 53)...]
        nested[start + 53 + 42] = 37
        nested[start + 106 + 16] = UInt8(start)
        try scratch.write("a.zip", nested)
        #expect(scratch.run("python3 -m zipfile -l a.zip") == 0)
        let error = try scratch.refusal("a.zip", members: ["food.db": inner.count, "user.db": 2])
        #expect([.archiveGarbage, .archiveDamaged].contains(error.code), "\(error)")
    }

    @Test func `an entry that the directory does not list is refused`() throws {
        let (scratch, bytes) = try stored()
        var hidden = bytes
        hidden.removeSubrange(directory + 53..<end)
        hidden[end - 53 + 8] = 1
        hidden[end - 53 + 10] = 1
        hidden[end - 53 + 12] = 53
        #expect(try refusal(scratch, hidden).code == .archiveGarbage)
    }

    @Test func `a zip entry with a wrong checksum is refused`() throws {
        let (scratch, bytes) = try stored()
        var wrong = bytes
        wrong[37] ^= 1
        let error = try refusal(scratch, wrong)
        #expect(error.code == .archiveDamaged)
        #expect(error.why == "the checksum of its entry \"food.db\" is wrong")
    }

    @Test(arguments: [
        ("zip -q -P pw a.zip food.db user.db", "a.zip", MoultError.Code.archiveEntryKind),
        ("7z a -bd -tzip -ppw -mem=AES256 a.zip food.db user.db", "a.zip", .archiveEntryKind),
        ("7z a -bd -tzip -mm=Deflate64 a.zip food.db user.db", "a.zip", .archiveKind),
        ("7z a -bd -ppw a.7z food.db user.db", "a.7z", .archiveEntryKind),
        ("7z a -bd -ppw -mhe=on a.7z food.db user.db", "a.7z", .archiveEntryKind),
        ("ln -sf food.db user.db && 7z a -bd -snl a.7z food.db user.db", "a.7z", .archiveEntryKind),
        ("mkdir d && 7z a -bd a.7z food.db user.db d", "a.7z", .archiveEntryKind),
        ("ln -sf food.db user.db && zip -q -y a.zip food.db user.db", "a.zip", .archiveEntryKind),
        ("mkdir d && zip -q a.zip food.db user.db d", "a.zip", .archiveEntryKind),
        ("for i in $(seq 20); do cp food.db $i; done && zip -q a.zip *", "a.zip", .archiveUndeclared),
    ])
    func `an archive with an unsupported feature or an undeclared entry is refused with its own code`(
        command: String, name: String, code: MoultError.Code
    ) throws {
        let scratch = try Scratch()
        // Long enough to be compressed, so that the method is visible.
        try scratch.write("food.db", [UInt8](repeating: 0x61, count: 5_000))
        try scratch.write("user.db", Array("food.db".utf8))
        #expect(scratch.run(command) == 0)
        let error = try scratch.refusal(name, members: ["food.db": 5_000, "user.db": 7])
        #expect(error.code == code, "\(error)")
    }
}
