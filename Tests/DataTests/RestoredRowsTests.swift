import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Rows from a set in quarantine are restored with all values, or the command names the missing ones.
@Suite struct RestoredRowsTests {
    let shop: Shop
    init() throws { shop = try Shop() }

    @Test func `values of columns that a migration renamed are counted and stay in the set`() throws {
        try shop.pack(
            "1.0.0", [.user("CREATE TABLE meal(id INTEGER PRIMARY KEY, what, day); PRAGMA user_version = 1;")])
        try shop.pack(
            "2.0.0",
            [
                .user(
                    "CREATE TABLE meal(id INTEGER PRIMARY KEY, title, day); PRAGMA user_version = 2;",
                    [
                        "0002-title.sql":
                            "ALTER TABLE meal RENAME what TO title; UPDATE meal SET day = substr(day, 1, 10); PRAGMA user_version = 2;"
                    ])
            ])
        try shop.install("1.0.0")
        try shop.sql(
            "diary.db", "INSERT INTO meal(what, day) VALUES('SOUP', '2026-11-20 18:00'), ('SALAD', '2026-11-21')")
        try shop.install("2.0.0")
        try shop.sql("diary.db", "DELETE FROM meal WHERE id = 2")
        let set = Files.name(of: try shop.onlyKept("diary").directory)
        for restored in [1, 0] {
            let ended = try shop.moult("quarantine", "--restore", "diary", "--table", "meal")
            #expect(ended.status == 0)
            #expect(ended.output.hasPrefix("\(counted(restored, "row")) of meal restored\n"), "\(ended.output)")
            let told = ended.output.split(whereSeparator: \.isWhitespace).joined(separator: " ")
            #expect(
                told.contains(
                    "the values of 1 row in columns that meal no longer has were not restored. To export the old database: "
                        + "moult quarantine --export FILE \(set) --store \(shop.store)"), "\(told)")
        }
        #expect(try shop.onlyKept("diary").sql("diary.db", "SELECT what FROM meal WHERE id = 2") == "SALAD\n")
    }

    @Test func `rows of an older release are restored into the columns that the installed release renamed`() throws {
        func release(_ column: String, _ more: [JSON.Member]) -> Shipped {
            let entry: [JSON.Member] = [.init("table", "item"), .init("where", "own = 1")]
            return .shared(
                "CREATE TABLE item(name TEXT PRIMARY KEY, \(column) TEXT, own INT DEFAULT 0);", [.object(entry + more)])
        }
        try shop.pack("1.0.0", [release("desc", [])])
        try shop.pack("2.0.0", [release("note", [.init("columns", ["desc": "note"])])])
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO item VALUES('UNMARKED', 'VALUE', 0)")
        try shop.install("2.0.0")
        let ended = try shop.moult("quarantine", "--restore", "app", "--table", "item")
        #expect(ended.output == "1 row of item restored\n")
        #expect(try shop.sql("app.db", "SELECT * FROM item") == "UNMARKED|VALUE|0\n")
    }

    @Test func `rows of a table without a key are restored once`() throws {
        let schema = "CREATE TABLE note(t);"
        try shop.pack("1.0.0", [.shared(schema)])
        try shop.pack("2.0.0", [.shared(schema + "INSERT INTO note VALUES('S1'), ('S2');")])
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO note VALUES('MINE'), ('TOO'), ('TOO')")
        try shop.install("2.0.0")
        for restored in [3, 0] {
            let ended = try shop.moult("quarantine", "--restore", "app", "--table", "note")
            #expect(ended.output == "\(counted(restored, "row")) of note restored\n")
            #expect(try shop.sql("app.db", "SELECT t FROM note ORDER BY t") == "MINE\nS1\nS2\nTOO\nTOO\n")
        }
    }

    @Test(arguments: ["k UNIQUE", "k"])
    func `rows that equal a shipped row are all restored`(_ key: String) throws {
        try shop.pack("1.0.0", [.shared("CREATE TABLE item(\(key), v); INSERT INTO item VALUES(NULL, 'x');")])
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO item VALUES(NULL, 'x'), (NULL, 'x')")
        #expect(try shop.moult("reset", "app", "--set-user-data-aside").status == 0)
        for restored in ["2 rows", "0 rows"] {
            let ended = try shop.moult("quarantine", "--restore", "app", "--table", "item")
            #expect(ended.output == "\(restored) of item restored\n", "\(ended)")
            #expect(try shop.read("app.db", "SELECT count(*) FROM item") == "3\n")
        }
    }

    @Test func `a row that equals a row of another release is restored once`() throws {
        func release(_ version: String, _ rows: String) throws {
            try shop.pack(
                version, [.shared("CREATE TABLE item(k UNIQUE, v); CREATE TABLE v\(version.prefix(1))(x); \(rows)")])
        }
        let shipped = "INSERT INTO item VALUES(NULL, 'x');"
        try release("1.0.0", shipped)
        try release("2.0.0", "")
        try release("3.0.0", shipped)
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO item VALUES(NULL, 'x'), (NULL, 'x')")
        // The app's two rows are missing in 2.0.0; of 3.0.0, the database has one row of its own.
        for (version, total) in [("2.0.0", 2), ("3.0.0", 3)] {
            try shop.install(version, "--accept-unpreserved")
            let sets = try shop.kept("app")
            #expect(!sets.isEmpty)
            for set in sets + sets.reversed() {
                let told = try shop.moult("quarantine", "--restore", Files.name(of: set.directory), "--table", "item")
                #expect(told.status == 0)
                #expect(
                    try shop.read("app.db", "SELECT count(*) FROM item") == "\(total)\n", "\(version): \(set), \(told)")
            }
        }
    }

    @Test func `the set that was kept last counts as the newest, even if the clock was set back`() throws {
        let item = "CREATE TABLE item(n TEXT PRIMARY KEY);"
        for number in 1...3 {
            try shop.pack("\(number).0.0", [.shared(item + "INSERT INTO item VALUES('S\(number)');")])
        }
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO item VALUES('FIRST')")
        try shop.install("2.0.0")
        // As if the first set had been kept while the clock was ahead.
        let first = try shop.onlyKept("app").directory
        try Shell.must(["sed", "-i", #"s/"time": "2/"time": "3/"#, "\(first)/set.json"])
        let ahead = "\(Files.directory(of: first))/3\(Files.name(of: first).dropFirst())"
        try Files.rename(first, to: ahead)
        try Shell.must(["touch", "-d", "2100-01-01", ahead])
        try shop.sql("app.db", "INSERT INTO item VALUES('SECOND')")
        try shop.install("3.0.0")
        let file = shop.scratch.path("newest.db")
        #expect(try shop.moult("quarantine", "--export", file, "app").status == 0)
        #expect(try Shop.read(file, "SELECT n FROM item ORDER BY n") == "SECOND\n")
    }
}
