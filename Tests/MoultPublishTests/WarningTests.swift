import MoultFiles
import MoultPublish
import TestSupport
import Testing

/// The exact messages of warnings after which a build continues.
@Suite struct WarningTests {
    struct Case: Sendable {
        let script: String
        let file: String
        let warnings: [String]
        init(_ script: String, _ file: String, _ warnings: [String]) {
            (self.script, self.file, self.warnings) = (script, file, warnings)
        }
    }

    static let cases: [Case] = [
        Case(
            "CREATE TABLE version(ver INTEGER);\nINSERT INTO version (ver)\nVALUES (\"2\");", "",
            [
                "s.sql:2: a string in double quotes (no such column: 2): SQL uses single quotes for strings and double "
                    + "quotes for names; this build accepts it, but not every SQLite does"
            ]
        ),
        Case(
            ".import --csv t.csv food\n", "a,b\n1,2\n",
            [
                "s.sql:1: the table food does not exist: it is created with the columns in the first row of t.csv, all of type TEXT "
                    + "(a, b)"
            ]
        ),
        Case(
            ".import --csv t.csv food\n", "a,A\n1,2\n",
            [
                "t.csv:1: columns renamed due to duplicates: \"a\" to \"a_1\", \"A\" to \"A_2\"",
                "s.sql:1: the table food does not exist: it is created with the columns in the first row of t.csv, all of type TEXT "
                    + "(a_1, A_2)",
            ]
        ),
        Case(
            "CREATE TABLE food(a,b);\n.import --csv t.csv food\n", "A,b\n1,2\n",
            [
                "t.csv:1: the first row contains the column names but is imported as data, because the table food already exists; skip it with .import --skip 1"
            ]
        ),
        Case("CREATE TABLE food(a,b);\n.import --csv --skip 1 t.csv food\n", "A,b\n1,2\n", []),
        Case(
            "CREATE TABLE food(a,b);\n.import --csv t.csv food\n", "1,\"a\0b\"\n2,3\n",
            ["t.csv:1: field 2 contains a NUL character: the text after it is dropped"]
        ),
        Case(
            "CREATE TABLE t(a);\nINSERT INTO t VALUES(random()), (hex(randomblob(4)));", "",
            [
                "s.sql:2: random() returns different values each time, so the next build gives a different result; compute "
                    + "them before the build",
                "s.sql:2: randomblob() returns different values each time, so the next build gives a different result; "
                    + "compute them before the build",
            ]
        ),
        Case(
            "CREATE TABLE t(a DEFAULT CURRENT_TIMESTAMP, b);\nSELECT date('2026-11-20');\nINSERT INTO t(b) VALUES(1);",
            "",
            [
                "s.sql:3: the statement uses the current time, so the next build gives a different result; set SOURCE_DATE_EPOCH, or write a fixed date"
            ]
        ),
        Case(
            "SELECT datetime('2026-11-20 12:00', 'localtime');", "",
            [
                "s.sql:1: localtime depends on the time zone of this machine, so the next build gives a different result; "
                    + "use UTC"
            ]
        ),
        Case(
            "CREATE TRIGGER r AFTER INSERT ON t BEGIN UPDATE t SET a = random(); END;".replacing(
                "CREATE", with: "CREATE"
            )
            .replacing("CREATE TRIGGER", with: "CREATE TABLE t(a);\nCREATE TRIGGER") + "\n.import t.csv t\n", "x\n",
            [
                "s.sql:3: random() returns different values each time, so the next build gives a different result; compute "
                    + "them before the build"
            ]
        ),
        Case(
            ".bail off\nSELECT x;\nSELECT 1;", "", ["s.sql:2: no such column: x: in the statement SELECT x"]
        ),
        Case(
            "CREATE TABLE t(a,b);\n.mode ascii\n.separator , \"\\n\"\n.import t.csv t\n", "1,2\n,3\n\n",
            ["t.csv:2: the first field is empty; the sqlite3 shell would not import this row as it is"]
        ),
    ]

    @Test(arguments: cases.indices) func `build warns about likely mistakes in a script`(_ index: Int) throws {
        let it = Self.cases[index]
        let (script, file, warnings) = (it.script, it.file, it.warnings)
        let scratch = try Scratch()
        try scratch.file("s.sql", script)
        try scratch.file("t.csv", file)
        var options = BuildOptions()
        options.environment = [:]
        var said: [String] = []
        options.warn = { said.append($0.description.replacing(scratch.path + "/", with: "")) }
        let report = try DatabaseBuilder(options).build(script: scratch.path("s.sql"), output: scratch.path("s.db"))
        #expect(said == warnings)
        #expect(report.warnings == warnings.count)
        let reasons = warnings.filter { $0.contains("a different result") }.count
        #expect(report.unrepeatable.count == reasons)
    }

    @Test func `too many warnings are summarized`() throws {
        let scratch = try Scratch()
        try scratch.file("s.sql", "CREATE TABLE t(a,b);\n.import --csv t.csv t\n.import --csv t.csv t\n")
        try scratch.file("t.csv", String(repeating: "1\n", count: 150))
        var options = BuildOptions()
        var said: [String] = []
        options.warn = { said.append($0.description) }
        let report = try DatabaseBuilder(options).build(script: scratch.path("s.sql"), output: scratch.path("s.db"))
        #expect(said.count == 202)
        #expect(said[99].hasSuffix("t.csv:100: expected 2 columns but found 1 - filling the rest with NULL"))
        #expect(said[100] == "\(scratch.path("t.csv")): 50 more warnings of these kinds")
        #expect(said[201] == said[100])
        #expect(report.imports.map(\.rows) == [150, 150])
    }
}
