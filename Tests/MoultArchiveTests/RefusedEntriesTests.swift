import MoultArchive
import MoultBasics
import TestSupport
import Testing

/// Archive entries that are not the declared plain files.
@Suite struct RefusedEntriesTests {
    private let members = ["food.db": 4, "user.db": 2]
    private let food = TarBytes.file("food.db", Array("food".utf8))
    private let user = TarBytes.file("user.db", Array("me".utf8))

    private func why(_ bytes: [UInt8], _ code: MoultError.Code, members: [String: Int]? = nil) throws -> String? {
        let scratch = try Scratch()
        try scratch.write("a.tar", bytes)
        let error = try scratch.refusal("a.tar", members: members ?? self.members)
        #expect(error.code == code, "\(error)")
        #expect(error.outcome == .failed && error.now != nil)
        return error.why
    }

    @Test func `the handmade archive is valid before it is damaged`() throws {
        let scratch = try Scratch()
        try scratch.write("a.tar", food + user + TarBytes.end)
        #expect(
            try scratch.unpack("a.tar", members: members)
                == ["food.db": Array("food".utf8), "user.db": Array("me".utf8)])
    }

    @Test(arguments: [
        ("1", "a hard link"), ("2", "a symbolic link"), ("3", "a device"), ("4", "a device"), ("6", "a named pipe"),
    ])
    func `entries that are not files are refused`(type: Character, what: String) throws {
        let link = TarBytes.header("user.db", type: type, link: "food.db")
        #expect(
            try why(food + link + TarBytes.end, .archiveEntryKind)
                == "its entry \"user.db\" is \(what), not a plain file")
    }

    @Test func `a directory instead of a file is refused`() throws {
        let directory = TarBytes.header("other/", type: "5")
        #expect(
            try why(food + directory + user + TarBytes.end, .archiveEntryKind)
                == "it contains the directory \"other/\", which contains no declared member")
        #expect(try why(TarBytes.header("food.db/", type: "5") + food, .archiveEntryKind) != nil)
    }

    @Test func `a directory that occurs twice is refused`() throws {
        let dot = TarBytes.header("./", type: "5")
        #expect(try why(dot + dot + food + user + TarBytes.end, .archiveDuplicate) == "it contains \"./\" twice")
    }

    /// Both sparse formats of GNU tar: a separate type, and pax records.
    @Test(arguments: ["gnu", "pax"]) func `sparse files are refused`(format: String) throws {
        let scratch = try Scratch()
        #expect(
            scratch.run("truncate -s 1M food.db && echo x >>food.db && tar --format=\(format) -S -cf a.tar food.db")
                == 0)
        let error = try scratch.refusal("a.tar", members: ["food.db": 1_048_578])
        #expect(error.code == .archiveEntryKind)
        #expect(error.why == "its entry \"food.db\" is a sparse file, not a plain file")
    }

    @Test(arguments: [
        ("../food.db", "which leads out of the directory with \"..\""),
        ("a/../food.db", "which leads out of the directory with \"..\""),
        ("..", "which leads out of the directory with \"..\""),
        ("/food.db", "which is an absolute path"),
        ("//food.db", "which is an absolute path"),
        ("a\\food.db", "which has characters that are not allowed"),
        ("food db", "which has characters that are not allowed"),
        ("food.db;x", "which has characters that are not allowed"),
        ("food.db\n", "which has characters that are not allowed"),
        ("a//food.db", "which is not a plain path"),
        ("a/./food.db", "which is not a plain path"),
        ("a/b/c/d/e/f/g/h/food.db", "which has more than 8 levels"),
        ("food.db-wal", "which SQLite would treat as part of a database next to it"),
        ("food.db-shm", "which SQLite would treat as part of a database next to it"),
        ("food.db-journal", "which SQLite would treat as part of a database next to it"),
    ])
    func `names that are not plain are refused`(name: String, what: String) throws {
        let shown = name.replacing("\n", with: "\\n")
        #expect(
            try why(TarBytes.file(name, []) + TarBytes.end, .archiveName)
                == "it contains the name \"\(shown)\", \(what)")
    }

    @Test func `a name that begins with two dot components is refused`() throws {
        #expect(
            try why(TarBytes.file("././food.db", []) + TarBytes.end, .archiveName)
                == "it contains the name \"./food.db\", which is not a plain path")
    }

    @Test func `a name with a component that is too long is refused`() throws {
        let name = "a/" + String(repeating: "n", count: 256)
        let why = try why(TarBytes.pax("path", name) + food + user + TarBytes.end, .archiveName)
        #expect(why?.hasSuffix("which has a part of more than 255 bytes") == true, "\(why ?? "")")
    }

    @Test func `names that are not ASCII are refused`() throws {
        #expect(try why(TarBytes.file("fööd.db", []) + TarBytes.end, .archiveName) != nil)
        #expect(try why(TarBytes.pax("path", "fööd.db") + food + TarBytes.end, .archiveName) != nil)
        // Latin-1 is not UTF-8.
        var latin = TarBytes.header("f_d.db")
        latin[1] = 0xf6
        // The checksum is the sum of all bytes of the header, with spaces in place of the checksum itself.
        let sum = latin[..<148].reduce(0) { $0 + Int($1) } + 8 * 32 + latin[156...].reduce(0) { $0 + Int($1) }
        let digits = Array(String(sum, radix: 8).utf8)
        latin.replaceSubrange(148..<154, with: [UInt8](repeating: 0x30, count: 6 - digits.count) + digits)
        #expect(try why(latin + TarBytes.end, .archiveName) != nil)
    }

    @Test func `duplicate entries are refused`() throws {
        #expect(try why(food + user + food + TarBytes.end, .archiveDuplicate) == "it contains \"food.db\" twice")
        #expect(
            try why(food + TarBytes.file("./food.db", Array("evil".utf8)) + user + TarBytes.end, .archiveDuplicate)
                == "it contains \"food.db\" twice")
        #expect(
            try why(food + user + TarBytes.file("FOOD.db", []) + TarBytes.end, .archiveUndeclared)
                == "it contains \"FOOD.db\", which is not declared; the declared name is \"food.db\", which differs in case"
        )
        #expect(
            try why(food, .archiveDuplicate, members: ["food.db": 4, "Food.db": 4])
                == "two declared members have the name \"food.db\", or names that differ from it only in case")
    }

    @Test func `missing and extra entries are refused`() throws {
        #expect(try why(food + TarBytes.end, .archiveMissing) == "it does not contain the declared \"user.db\"")
        #expect(try why(TarBytes.end, .archiveMissing) == "it does not contain the declared \"food.db\", \"user.db\"")
        #expect(
            try why(food + user + TarBytes.file("readme.txt", []) + TarBytes.end, .archiveUndeclared)
                == "it contains \"readme.txt\", which is not declared")
    }

    @Test(arguments: ["food.db-wal", "../x", "a b"]) func `invalid declarations are refused`(name: String) throws {
        #expect(try why(food + user + TarBytes.end, .archiveName, members: [name: 1]) != nil)
    }

    @Test(arguments: [3, 5, 0, Int.max]) func `members that do not have the declared size are refused`(declared: Int)
        throws
    {
        #expect(
            try why(food + user + TarBytes.end, .archiveSize, members: ["food.db": declared, "user.db": 2])
                == "its member \"food.db\" has 4 bytes instead of \(declared)")
    }

    /// The reader stops at the first undeclared entry, and does not read the rest.
    @Test(.tags(.thorough)) func `the reader stops at the first of ten million undeclared entries`() throws {
        let scratch = try Scratch()
        // 10,000,000 headers are 5 GB of tar; zstd compresses them to a few hundred KB. The headers are made from one
        // repeated block.
        try scratch.write("block", (0..<1000).flatMap { _ in TarBytes.header("x") })
        #expect(
            scratch.run(
                "zstd -q block && for i in $(seq 100); do cat block.zst; done >hundred && for i in $(seq 100); do cat hundred; done >a.tar.zst"
            ) == 0)
        let start = ContinuousClock.now
        let error = #expect(throws: MoultError.self) {
            try scratch.reader("a.tar.zst").read(members: members) { name, _ in Issue.record("\(name)") }
        }
        #expect(error?.code == .archiveUndeclared)
        // Reading the whole archive would take minutes.
        #expect(ContinuousClock.now - start < .seconds(10))
    }
}
