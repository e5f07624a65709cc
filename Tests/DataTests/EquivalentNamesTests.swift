import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Unicode has two spellings of é, which are equal in Swift but different in SQLite. A database may therefore have a table for
/// each spelling, and the app may own rows in both.
@Suite struct EquivalentNamesTests {
    let shop: Shop
    init() throws { shop = try Shop() }

    private static let one = "caf\u{e9}"
    private static let other = "cafe\u{301}"
    private static let both = [one, other]

    /// A table for each spelling, with a column for each spelling.
    private static let schema = both.map { "CREATE TABLE \"\($0)\"(\"\(one)\" TEXT, \"\(other)\" TEXT);" }.joined()

    private func fill(_ file: String) throws {
        for name in Self.both {
            try shop.sql(file, "INSERT INTO \"\(name)\" VALUES('ONE \(name.utf8.count)', 'TWO \(name.utf8.count)')")
        }
    }

    private func content(_ file: String) throws -> [String] {
        try Self.both.map { try shop.read(file, "SELECT * FROM \"\($0)\"") }
    }

    private static let filled = ["ONE 5|TWO 5\n", "ONE 6|TWO 6\n"]

    @Test func `rows of two tables whose names are equivalent in Unicode are carried to the next release and back`()
        throws
    {
        let preserve: [JSON] = Self.both.map { ["table": .string($0)] }
        try shop.pack("1.0.0", [.shared(Self.schema, preserve)])
        try shop.install("1.0.0")
        try fill("app.db")
        try shop.pack("2.0.0", [.shared(Self.schema + "CREATE TABLE new(x);", preserve)])
        try shop.install("2.0.0")
        #expect(try content("app.db") == Self.filled)
        #expect(try shop.moult("rollback").status == 0)
        #expect(try content("app.db") == Self.filled)
    }

    @Test(arguments: both)
    func `if only one of two tables with equivalent names is preserved, the rows of the other are kept in quarantine`(
        preserved: String
    ) throws {
        let preserve: [JSON] = [["table": .string(preserved)]]
        try shop.pack("1.0.0", [.shared(Self.schema, preserve)])
        try shop.install("1.0.0")
        try fill("app.db")
        try shop.pack("2.0.0", [.shared(Self.schema + "CREATE TABLE new(x);", preserve)])
        try shop.install("2.0.0")
        let left = Self.both.filter { $0.utf8.count != preserved.utf8.count }
        #expect(try shop.read("app.db", "SELECT count(*) FROM \"\(preserved)\"") == "1\n")
        let kept = try shop.onlyKept("app")
        #expect(left.map { kept.rows($0) } == [1])
        #expect(kept.rows(preserved) == nil)
        // moult finds the table by its exact spelling.
        let ended = try shop.moult("quarantine", "--restore", Files.name(of: kept.directory), "--table", left[0])
        #expect(ended.status == 0, "\(ended)")
        #expect(try content("app.db") == Self.filled)
    }

    /// A Swift dictionary would keep only one of the two names.
    @Test func `pack refuses two renamed columns whose names differ only in Unicode`() throws {
        let columns: JSON = .object(Self.both.map { .init($0, .string("\($0) new")) })
        let preserve: [JSON] = [["table": .string(Self.one), "columns": columns]]
        let packed = try shop.tryToPack("1.0.0", [.shared(Self.schema, preserve)])
        #expect(packed.status != 0)
        #expect(
            packed.errors.contains("columns has two members whose names differ only in their Unicode form: "),
            "\(packed)"
        )
    }

    @Test(arguments: both)
    func `a migration that empties or drops one of two tables with equivalent names is refused`(lost: String) throws {
        try shop.pack("1.0.0", [.user(Self.schema + "PRAGMA user_version = 1;")])
        try shop.install("1.0.0")
        try fill("diary.db")
        for (version, change) in [("2.0.0", "DELETE FROM"), ("3.0.0", "DROP TABLE")] {
            let left = change == "DELETE FROM" ? Self.both : Self.both.filter { $0.utf8.count != lost.utf8.count }
            let schema = left.map { "CREATE TABLE \"\($0)\"(\"\(Self.one)\" TEXT, \"\(Self.other)\" TEXT);" }
            let release = try shop.makeUnchecked(
                version,
                [
                    .user(
                        schema.joined() + "PRAGMA user_version = 2;",
                        ["m/2.sql": "\(change) \"\(lost)\";\nPRAGMA user_version = 2;\n"])
                ])
            let ended = try shop.moult("apply", release)
            #expect(ended.status == 3, "\(change): \(ended)")
            #expect(try content("diary.db") == Self.filled)
        }
    }

    @Test(arguments: both)
    func `a migration that changes a value in one of two columns with equivalent names keeps the old database`(
        column: String
    ) throws {
        try shop.pack("1.0.0", [.user(Self.schema + "PRAGMA user_version = 1;")])
        try shop.install("1.0.0")
        try fill("diary.db")
        try shop.pack(
            "2.0.0",
            [
                .user(
                    Self.schema + "PRAGMA user_version = 2;",
                    [
                        "m/2.sql":
                            "UPDATE \"\(Self.other)\" SET \"\(column)\" = NULL;\nPRAGMA user_version = 2;\n"
                    ])
            ])
        try shop.install("2.0.0")
        let kept = try shop.onlyKept("diary")
        #expect(kept.rows(Self.other) == 1)
        #expect(kept.rows(Self.one) == nil)
    }

    @Test(arguments: [(both, false), ([one, one.uppercased()], false), ([one, "C" + one.dropFirst()], true)])
    func `a table name in two databases causes a warning only if SQLite treats the names as equal`(
        names: [String], warns: Bool
    ) throws {
        let databases = zip(["first", "second"], names).map { database, table in
            Shipped.reference("CREATE TABLE \"\(table)\"(x);", name: database)
        }
        let ended = try shop.tryToPack("1.0.0", databases)
        #expect(ended.status == 0)
        #expect(ended.errors.contains("a query without a database name") == warns, "\(ended)")
    }

    @Test func `a golden query and diff distinguish two texts that are equivalent in Unicode`() throws {
        let value = { (spelling: String) in
            "CREATE TABLE word(w DEFAULT '\(spelling)'); INSERT INTO word VALUES('\(spelling)');"
        }
        try shop.pack("1.0.0", [.reference(value(Self.one))])
        try shop.pack("2.0.0", [.reference(value(Self.other))])
        let ended = try shop.moult("diff", shop.manifest("1.0.0"), shop.manifest("2.0.0"))
        #expect(ended.output.contains("column w of table word changed"), "\(ended)")
        let file = shop.scratch.path("word.db")
        try Shop.sql(file, value(Self.one))
        let new = shop.scratch.path("new.db")
        try Shop.sql(new, value(Self.one))
        for (expected, status) in [(Self.one, 0), (Self.other, 3)] {
            let query = "SELECT w FROM word=\(expected)"
            let checked = try Shell.run([Shop.command(), "replace", file, new, "--check", query])
            #expect(checked.status == Int32(status), "\(checked)")
        }
    }
}
