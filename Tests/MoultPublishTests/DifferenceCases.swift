import Testing

/// A difference between a build and the sqlite3 shell, which `docs/publish.md` lists.
struct Difference: Sendable, CustomTestStringConvertible {
    enum Ours: Sendable {
        /// The SQL dump of the database.
        case dump(String)
        /// The build is refused, and the message contains this text.
        case refused(String)
    }

    let name: String
    let script: Bytes
    var files: [String: Bytes] = [:]
    /// A line that only the dump of the shell's database has.
    let shell: Bytes
    let ours: Ours

    var testDescription: String { name }

    /// The script imports the rows from a file next to it.
    private static let rows: [String: Bytes] = ["rows.csv": "a,b\n"]

    static let all: [Difference] = [
        Difference(
            name: "an error", script: "CREATE TABLE t(a);\nINSERT INTO nowhere VALUES(1);\nINSERT INTO t VALUES(2);\n",
            shell: "INSERT INTO t VALUES(2);", ours: .refused("s.sql:2: no such table: nowhere")),
        Difference(
            name: "a transaction left open", script: "CREATE TABLE t(a);\nBEGIN;\nINSERT INTO t VALUES(1);\n",
            shell: "CREATE TABLE t(a);", ours: .refused("s.sql: the script ends inside a transaction")),
        Difference(
            name: "a semicolon after a dot command", script: "CREATE TABLE t(a, b);\n.import --csv rows.csv t;\n",
            files: rows, shell: "CREATE TABLE IF NOT EXISTS \"t;\"(", ours: .refused(".import ends with \";\"")),
        Difference(
            name: "typographic quotes", script: "CREATE TABLE “food”(a);\n", shell: "CREATE TABLE “food”(a);",
            ours: .refused("s.sql:1: “ (U+201C) is used instead of \"")),
        Difference(
            name: "a column's name that is not UTF-8", script: ".import --csv bad.csv t\n",
            files: ["bad.csv": ["", 0xFF, ",b\n1,2\n"]], shell: ["\"", 0xFF, "\" TEXT, \"b\" TEXT);"],
            ours: .refused("bad.csv:1: a column name is not UTF-8")),
        Difference(
            name: "an empty file for a new table", script: ".import --csv none.csv t\nCREATE TABLE u(a);\n",
            files: ["none.csv": ""], shell: "CREATE TABLE u(a);", ours: .refused("none.csv is empty")),
        Difference(
            name: "functions of the shell", script: "CREATE TABLE t(a);\nINSERT INTO t VALUES(readfile('rows.csv'));\n",
            files: rows, shell: "INSERT INTO t VALUES(X'612c620a');",
            ours: .refused("readfile() is a function of the sqlite3 shell")),
        Difference(
            name: "output of a program", script: "CREATE TABLE t(a, b);\n.mode csv\n.import \"|cat rows.csv\" t\n",
            files: rows, shell: "INSERT INTO t VALUES('a','b');",
            ours: .refused("a script that runs other programs is not repeatable")),
        Difference(
            name: "other dot commands",
            script: ".parameter init\n.parameter set :p 3\nCREATE TABLE t AS SELECT :p AS p;\n",
            shell: "INSERT INTO t VALUES(3);",
            ours: .refused("unknown command .parameter: a build supports only .bail, .echo")),
        Difference(
            name: "a placeholder", script: "CREATE TABLE t(a);\nINSERT INTO t VALUES('$${x}');\n",
            shell: "INSERT INTO t VALUES('$${x}');", ours: .dump("CREATE TABLE t(a);\nINSERT INTO t VALUES('${x}');\n")),
        // The shell does not use SOURCE_DATE_EPOCH, which the test sets to the first second of 1970.
        Difference(
            name: "the time", script: "CREATE TABLE t(a);\nINSERT INTO t VALUES(date('now') > '2020');\n",
            shell: "INSERT INTO t VALUES(1);", ours: .dump("CREATE TABLE t(a);\nINSERT INTO t VALUES(0);\n")),
        // Both programs run in the parent directory of the script.
        Difference(
            name: "paths", script: "CREATE TABLE t(a, b);\n.import --csv below.csv t\n",
            files: ["below.csv": "below,1\n", "../below.csv": "above,1\n"], shell: "INSERT INTO t VALUES('above','1');",
            ours: .dump("CREATE TABLE t(a, b);\nINSERT INTO t VALUES('below','1');\n")),
        // The SQL of a dump does not show the journal mode, so the test appends it to the dump.
        Difference(
            name: "WAL mode", script: "PRAGMA journal_mode = WAL;\nCREATE TABLE t(a);\n",
            shell: "-- wal", ours: .dump("CREATE TABLE t(a);\n-- delete\n")),
    ]
}
