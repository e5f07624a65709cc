import MoultBasics
import MoultFiles
import MoultPublish
import TestSupport
import Testing

/// Errors that stop a build: the exact messages, and no leftovers.
@Suite struct RefusalTests {
    @Test(arguments: RefusalCases.all) func `build refuses an invalid script with an exact message`(
        _ it: RefusalCases.Case
    ) throws {
        // On another file system than `/`, Git words its message differently.
        let scratch = try Scratch(in: "/tmp")
        try scratch.file("outside.csv", "1,2\n")
        try scratch.file("outside.sql", "SELECT 1;\n")
        try scratch.file("in/food.csv", "1,2\n3\n")
        for (name, bytes) in it.files { try scratch.file("in/\(name)", bytes.all) }
        try scratch.file("in/s.sql", it.script.all)
        try Shell.must(["ln", "-s", "../outside.csv", scratch.path("in/link.csv")])
        let before = try Shell.must(["find", ".", "-printf", "%p %y %s\\n"], in: scratch.path)
        var options = BuildOptions()
        options.environment = it.environment
        let error = #expect(throws: MoultError.self) {
            try DatabaseBuilder(options).build(script: scratch.path("in/s.sql"), output: scratch.path("out.db"))
        }
        let said = error?.description.replacing("\(scratch.path)/", with: "").replacing(scratch.path, with: "TOP")
        #expect(said == it.message)
        #expect(error?.outcome == it.outcome)
        #expect(try Shell.must(["find", ".", "-printf", "%p %y %s\\n"], in: scratch.path) == before)
    }

    @Test func `a missing script is an error`() throws {
        let scratch = try Scratch()
        let error = #expect(throws: MoultError.self) {
            try DatabaseBuilder().build(script: scratch.path("s.sql"), output: scratch.path("out.db"))
        }
        #expect(
            error?.description == "cannot read the script \(scratch.path)/s.sql: no such file. Specify a file with SQL."
        )
    }

    /// The existing file at the output path, and the reason why it is kept.
    @Test(arguments: [
        ("out.csv", "", "it exists and is not a SQLite database. Choose another file with -o, or remove it first."),
        (
            "out.db", "-wal",
            "TOP/out.db-wal belongs to another database, and SQLite would use it with the new one. Close the programs that use that database. If the file stays, choose another file with -o, or move it away: mv TOP/out.db-wal TOP/out.db-wal.old"
        ),
        (
            "out.db", "-journal",
            "TOP/out.db-journal belongs to another database, and SQLite would use it with the new one. Close the programs that use that database. If the file stays, choose another file with -o, or move it away: mv TOP/out.db-journal TOP/out.db-journal.old"
        ),
    ])
    func `build does not replace an output file of another kind`(
        _ name: String, _ suffix: String, _ why: String
    ) throws {
        let scratch = try Scratch()
        try scratch.file("s.sql", "CREATE TABLE t(a);")
        try scratch.file(name + suffix, "content of another program")
        let error = #expect(throws: MoultError.self) {
            try DatabaseBuilder().build(script: scratch.path("s.sql"), output: scratch.path(name))
        }
        #expect(error?.outcome == .refused)
        #expect(error?.description.replacing(scratch.path, with: "TOP") == "cannot write TOP/\(name): \(why)")
        #expect(try scratch.bytes(name + suffix) == Array("content of another program".utf8))
    }

    @Test func `build does not overwrite an input`() throws {
        let scratch = try Scratch()
        try scratch.file("food.sql", "CREATE TABLE t(a); INSERT INTO t VALUES(1);")
        _ = try DatabaseBuilder().build(script: scratch.path("food.sql"), output: scratch.path("food.db"))
        try scratch.file("s.sql", "ATTACH 'food.db' AS f; CREATE TABLE t AS SELECT * FROM f.t;")
        let before = try scratch.bytes("food.db")
        let error = #expect(throws: MoultError.self) {
            try DatabaseBuilder().build(script: scratch.path("s.sql"), output: scratch.path("food.db"))
        }
        #expect(error?.why == "the script reads this file")
        #expect(try scratch.bytes("food.db") == before)
    }
}
