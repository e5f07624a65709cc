import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Databases in UTF-16 are installed if SQLite can open them together, and otherwise refused with the reason.
@Suite struct TextEncodingTests {
    let shop: Shop
    init() throws { shop = try Shop() }

    private static let word = "PRAGMA encoding = 'UTF-16le'; CREATE TABLE word(w); INSERT INTO word VALUES('wörd');"

    @Test func `databases with the same encoding are installed and opened together`() throws {
        try shop.pack(
            "1.0.0",
            [
                Shipped(name: "word", kind: "reference", sql: Self.word),
                Shipped(name: "more", kind: "reference", sql: Self.word),
            ])
        try shop.install("1.0.0")
        let ended = try shop.moult("sql", "SELECT a.w = b.w FROM word.word a, more.word b")
        #expect(ended.status == 0 && ended.output == "a.w = b.w\n        1\n", "\(ended)")
    }

    @Test func `a release whose databases have different encodings is neither packed nor installed`() throws {
        let databases = [
            Shipped(name: "word", kind: "reference", sql: Self.word),
            .user("CREATE TABLE note(t);"),
        ]
        let packed = try shop.tryToPack("1.0.0", databases)
        #expect(packed.status == 3, "\(packed)")
        #expect(packed.errors.contains("is in UTF-8, and word in UTF-16le"), "\(packed.errors)")
        let ended = try shop.moult("apply", shop.makeUnchecked("1.0.0", databases))
        #expect(ended.status == 3, "\(ended)")
        #expect(ended.errors.contains("SQLite attaches only databases with the same text encoding"), "\(ended.errors)")
    }
}
