import MoultFiles
import TestSupport
import Testing

/// `moult pack` refuses releases that no store could use.
@Suite struct PackLimitsTests {
    private let scratch: Scratch

    init() throws {
        scratch = try Scratch()
        let one =
            #"{"manifest":1,"product":"org.example.x","version":"1.0.0","databases":{"food":{"kind":"reference","build":{"script":"make.sql"}}}}"#
        try scratch.write("make.sql", "CREATE TABLE t(x);")
        try scratch.write("one.json", one)
        try scratch.write("two.json", one.replacing("1.0.0", with: "2.0.0"))
    }

    @Test(arguments: [
        ("9223372036854775807", "rel/x-1.0.0.json: sequence must be less than 2^53, but is 9223372036854775807"),
        ("9007199254740992", "rel/x-1.0.0.json: sequence must be less than 2^53, but is 9007199254740992"),
        // The next release would get this sequence plus 1.
        ("9007199254740991", "x-2.0.0.json: sequence must be less than 2^53, but is 9007199254740992"),
    ])
    func `pack refuses a sequence of 2 to the power of 53 or more`(_ sequence: String, _ message: String) throws {
        let ended = try scratch.moult(
            """
            moult pack -q one.json -o rel && sed -i 's/"sequence": 1,/"sequence": \(sequence),/' rel/x-1.0.0.json
            moult pack two.json -o rel; echo $?; ls rel | grep -c 2.0.0
            """)
        #expect(ended.out == "1\n0\n", "\(ended)")
        #expect(ended.err.hasPrefix("moult: error: \(message)\n"), "\(ended)")
    }

    /// A later release with such an entry would always be refused, because no statement can carry the rows over.
    @Test(arguments: [
        (
            "CREATE TABLE t(rowid TEXT, oid TEXT, _rowid_ TEXT)",
            "its columns use all three names of the rowid"
        ),
        (
            "CREATE TABLE t(\((1...2000).map { "c\($0)" }.joined(separator: ", ")))",
            "the table has 2000 columns, and SQLite says: too many columns in result set"
        ),
    ])
    func `pack refuses preserve for a table whose rows can never be carried over`(
        _ table: String, _ why: String
    ) throws {
        try scratch.write("make.sql", "\(table);")
        try scratch.write(
            "draft.json",
            #"{"manifest":1,"product":"org.example.x","version":"1.0.0","databases":{"app":{"kind":"shared","build":{"script":"make.sql"},"preserve":[{"table":"t"}]}}}"#
        )
        let ended = try scratch.moult("moult pack draft.json -o rel; echo $?; ls rel")
        #expect(ended.out == "3\n", "\(ended)")
        #expect(
            ended.err.contains(
                "draft.json: databases.app.preserve[0].table: rows of t can never be carried over: \(why)\n"),
            "\(ended)")
    }
}
