import MoultArchive
import MoultBasics
import Testing

/// Zip files whose directory is wrong or incomplete.
@Suite struct RefusedLayoutsTests {
    private let members = ["food.db": 4, "user.db": 2]

    /// Two stored files, so that every byte of the archive is known: food.db at 0, user.db at 41.
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

    /// What unpacks itself has a program in front; the offsets may or may not count it.
    @Test func refusesBytesInFront() throws {
        let (scratch, bytes) = try stored()
        let front = Array("PK, but a program".utf8)
        #expect(try refusal(scratch, front + bytes).code == .archiveGarbage)
        try scratch.write("a.zip", front + bytes)
        #expect(scratch.run("zip -q -A a.zip && unzip -tq a.zip") == 0)
        #expect(try scratch.refusal("a.zip", members: members).code == .archiveGarbage)
    }

    @Test func refusesBytesBetweenEntriesAndDirectory() throws {
        let (scratch, bytes) = try stored()
        var gap = Array(bytes[..<directory]) + [1, 2, 3] + Array(bytes[directory...])
        // The directory's offset in the end record.
        gap[end + 3 + 16] += 3
        try scratch.write("a.zip", gap)
        #expect(scratch.run("unzip -tq a.zip") == 0)
        let error = try refusal(scratch, gap)
        #expect(error.code == .archiveGarbage)
        #expect(error.why == "the bytes at 80 belong to no entry of the zip archive")
    }

    @Test func refusesAComment() throws {
        let (scratch, bytes) = try stored()
        var comment = bytes + Array("hi".utf8)
        comment[bytes.count - 2] = 2
        #expect(try refusal(scratch, comment).code == .archiveCut)
    }

    /// The directory names one file, the entry itself another: two programs would see different archives.
    @Test func refusesTwoNamesForOneEntry() throws {
        let (scratch, bytes) = try stored()
        var other = bytes
        other.replaceSubrange(30..<37, with: "evil.db".utf8)
        let error = try refusal(scratch, other)
        #expect(error.code == .archiveDamaged)
        #expect(
            error.why == "its directory is damaged: an entry's own header says something else than the directory")
    }

    @Test func refusesTwoEntriesAtOnePlace() throws {
        let (scratch, bytes) = try stored()
        var twice = bytes
        // The second entry's offset in the directory.
        twice.replaceSubrange(directory + 53 + 42..<directory + 53 + 46, with: [0, 0, 0, 0])
        #expect(try refusal(scratch, twice).code == .archiveGarbage)
    }

    @Test func refusesAnEntryThatTheDirectoryDoesNotList() throws {
        let (scratch, bytes) = try stored()
        var hidden = bytes
        hidden.removeSubrange(directory + 53..<end)
        hidden[end - 53 + 8] = 1
        hidden[end - 53 + 10] = 1
        hidden[end - 53 + 12] = 53
        #expect(try refusal(scratch, hidden).code == .archiveGarbage)
    }

    @Test func refusesAWrongChecksumOfZip() throws {
        let (scratch, bytes) = try stored()
        var wrong = bytes
        wrong[37] ^= 1
        #expect(try refusal(scratch, wrong).code == .archiveDamaged)
    }

    @Test(arguments: [
        ("zip -q -P pw a.zip food.db user.db", "a.zip", MoultError.Code.archiveEntryKind),
        ("7z a -bd -tzip -mm=LZMA a.zip food.db user.db", "a.zip", .archiveKind),
        ("zip -q -Z bzip2 a.zip food.db user.db", "a.zip", .archiveKind),
        ("ln -sf food.db user.db && zip -q -y a.zip food.db user.db", "a.zip", .archiveEntryKind),
        ("mkdir d && zip -q a.zip food.db user.db d", "a.zip", .archiveEntryKind),
        ("for i in $(seq 20); do cp food.db $i; done && zip -q a.zip *", "a.zip", .archiveUndeclared),
    ])
    func refusesByName(command: String, name: String, code: MoultError.Code) throws {
        let scratch = try Scratch()
        // Long enough to be compressed, so that the method shows.
        try scratch.write("food.db", [UInt8](repeating: 0x61, count: 5_000))
        try scratch.write("user.db", Array("food.db".utf8))
        #expect(scratch.run(command) == 0)
        let error = try scratch.refusal(name, members: ["food.db": 5_000, "user.db": 7])
        #expect(error.code == code, "\(error)")
    }
}
