import MoultArchive
import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// Small archives in which one byte was changed, removed or added are refused, or read with exactly the original
/// contents.
@Suite struct ChangedByteTests {
    private static let contents = ["food.db": Array("some food, some food".utf8), "a/user.db": Array("me".utf8)]
    private static let packings = [
        ("a.zip", "cd in && zip -q ../a.zip food.db a/user.db"),
        ("a.zip", "cd in && zip -q -X - food.db a/user.db >../a.zip"),
        ("a.zip", "cd in && zip -q -0 -X ../a.zip food.db a/user.db && echo hi | zip -q -z ../a.zip"),
        ("a.zip", "cd in && zip -q -fz -X - food.db a/user.db >../a.zip"),
        ("a.zip", "cd in && zip -q -X ../b.zip food.db a/user.db && printf front | cat - ../b.zip >../a.zip"),
        ("a.tar.xz", "tar -b 2 -cJf a.tar.xz -C in food.db a/user.db"),
        ("a.7z", "cd in && 7z a -bd ../a.7z food.db a/user.db"),
    ]

    /// Returns the values to try for a byte. Trying every value takes minutes, so without `MOULT_LONG_TESTS`, these are 0,
    /// 255 and the values that differ from the byte in one bit.
    private static func values(_ byte: UInt8) -> Set<UInt8> {
        if getenv("MOULT_LONG_TESTS") != nil { return Set(UInt8.min...UInt8.max).subtracting([byte]) }
        return Set((0..<8).map { byte ^ 1 << $0 } + [0, 0xff]).subtracting([byte])
    }

    @Test(arguments: packings)
    func `an archive with a changed byte never gives different contents`(name: String, command: String) throws {
        let scratch = try Scratch()
        #expect(scratch.run("mkdir -p in/a") == 0)
        for (name, bytes) in Self.contents { try scratch.write("in/\(name)", bytes) }
        #expect(scratch.run(command) == 0)
        let bytes = try scratch.read(name)
        #expect(try contents(of: bytes, name, scratch) == Self.contents)
        var accepted = 0
        func check(_ changed: [UInt8], _ what: @autoclosure () -> String) throws {
            guard let found = try contents(of: changed, name, scratch) else { return }
            accepted += 1
            if found != Self.contents { Issue.record("\(what()): \(found)") }
        }
        for place in bytes.indices {
            for value in Self.values(bytes[place]) {
                var changed = bytes
                changed[place] = value
                try check(changed, "byte \(place) is \(value)")
            }
            var shorter = bytes
            shorter.remove(at: place)
            try check(shorter, "byte \(place) is missing")
            var longer = bytes
            longer.insert(0, at: place)
            try check(longer, "a NUL comes before byte \(place)")
            try check(Array(bytes[..<place]), "cut at \(place)")
        }
        // Times and attributes are ignored, so some changes are accepted, but not in the stream of xz, where the checksum covers them.
        #expect((accepted > 0) == (name != "a.tar.xz"))
    }

    /// Returns the content of each member; nil if the archive is refused.
    private func contents(of archive: [UInt8], _ name: String, _ scratch: borrowing Scratch) throws -> [String:
        [UInt8]]?
    {
        // Truncating the file would wait for the disk each time.
        unlink(scratch.path(name))
        try scratch.write(name, archive)
        var contents: [String: [UInt8]] = [:]
        do {
            try ArchiveReader(Descriptor(scratch.path(name), .read), kind: ArchiveKind(fileName: name)).read(
                members: Self.contents.mapValues(\.count)
            ) { member, part in
                if case .bytes(let bytes) = part { contents[member, default: []] += bytes }
            }
        } catch is MoultError { return nil }
        return contents
    }
}
