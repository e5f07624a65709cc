import MoultBasics
import Testing

/// Scripts that cannot be built, and the error messages.
enum RefusalCases {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var script: Bytes
        let message: String
        var outcome = MoultError.Outcome.failed
        var files: [String: Bytes] = [:]
        var environment: [String: String] = [:]

        init(_ name: String, _ script: String, _ message: String) {
            (testDescription, self.script, self.message) = (name, Bytes(stringLiteral: script), message)
        }

        func with(_ change: (inout Case) -> Void) -> Case {
            var copy = self
            change(&copy)
            return copy
        }
    }

    static let all = statements + shellOnly + commands + paths + substitutions

    private static let statements: [Case] = [
        Case(
            "syntax", "SELECT 1;\n\n-- about\nCREATE TABLE\n  t(a,,b);",
            "in/s.sql:4: near \",\": syntax error: in the statement CREATE TABLE t(a,,b)"),
        Case(
            "no such table", "INSERT INTO t VALUES(1); SELECT 2;",
            "in/s.sql:1: no such table: t: in the statement INSERT INTO t VALUES(1)"),
        Case(
            "second statement of a line", "SELECT 1; SELECT\n x;",
            "in/s.sql:1: no such column: x: in the statement SELECT x"),
        Case(
            "constraint", "CREATE TABLE t(a UNIQUE);\nINSERT INTO t VALUES(1),(1);",
            "in/s.sql:2: UNIQUE constraint failed: t.a: in the statement INSERT INTO t VALUES(1),(1)"),
        Case(
            "unfinished", "CREATE TABLE t(a",
            "in/s.sql:1: incomplete input: in the statement CREATE TABLE t(a"),
        Case(
            "unfinished quotes", "SELECT 'a\n",
            "in/s.sql:1: unrecognized token: \"'a\n\": in the statement SELECT 'a"),
        Case(
            "open transaction", "BEGIN;\nCREATE TABLE t(a);",
            "in/s.sql: the script ends inside a transaction: a BEGIN or SAVEPOINT has no COMMIT or RELEASE, so its "
                + "changes would be lost. Add the statement COMMIT; at the end of the script."),
        Case(
            "typographic double quotes", "CREATE TABLE “food” (“pk” INTEGER);",
            "in/s.sql:1: “ (U+201C) is used instead of \": web pages and word processors insert such characters, and SQL treats them as part of a name. Replace the typographic characters in the script with plain ASCII ones."
        ),
        Case(
            "typographic single quotes", "SELECT 1;\nSELECT ‘a’;",
            "in/s.sql:2: ‘ (U+2018) is used instead of ': web pages and word processors insert such characters, and SQL treats them as part of a name. Replace the typographic characters in the script with plain ASCII ones."
        ),
        Case(
            "no-break space", "CREATE\u{A0}TABLE t(a);",
            "in/s.sql:1: a no-break space (U+00A0) is used instead of a space: web pages and word processors insert such characters, and SQL treats them as part of a name. Replace the typographic characters in the "
                + "script with plain ASCII ones."),
        Case(
            "typographic separator", ".separator “|”\n",
            "in/s.sql:1: “ (U+201C) is used instead of \": web pages and word processors insert such characters, and .separator would use them literally. Replace the typographic characters in the script with plain "
                + "ASCII ones."),
        Case(
            "NUL", "SELECT 1;\n\0",
            "in/s.sql:2: the script contains a NUL character. Check that the script is a text file."),
        Case("not UTF-8", "", "in/s.sql:2: the statement that begins here is not UTF-8. Save the script as UTF-8.").with
        {
            $0.script = ["-- a\nSELECT\n'", 0xE4, "';"]
        },
        Case(
            "writing elsewhere", "ATTACH 'new.db' AS n; CREATE TABLE n.t(a);",
            "in/s.sql:1: unable to open database: new.db: No such file or directory: in the statement ATTACH 'new.db' AS n"
        ),
        Case(
            "SOURCE_DATE_EPOCH", "SELECT 1;",
            "invalid SOURCE_DATE_EPOCH=today: the value must be the number of seconds since 1970-01-01. Unset the "
                + "variable, or set it to the output of `git log -1 --format=%ct`."
        ).with {
            $0.environment = ["SOURCE_DATE_EPOCH": "today"]
            $0.outcome = .usage
        },
    ]

    private static let shellOnly: [Case] = [
        Case(
            "function", "SELECT\nreadfile('x');",
            "in/s.sql:1: no such function: readfile: in the statement SELECT readfile('x'). readfile() is a function of the sqlite3 shell, not of SQLite. Write the bytes as a literal, x'…', or import them."
        ),
        Case(
            "operator", "SELECT 'a' REGEXP 'b';",
            "in/s.sql:1: no such function: REGEXP: in the statement SELECT 'a' REGEXP 'b'. REGEXP is a function of the sqlite3 shell, not of SQLite. Use LIKE or GLOB."
        ),
        Case(
            "table", "SELECT * FROM generate_series(1,2);",
            "in/s.sql:1: no such table: generate_series: in the statement SELECT * FROM generate_series(1,2). "
                + "generate_series is a table of the sqlite3 shell, not of SQLite. Use WITH RECURSIVE."),
        Case(
            "module", "CREATE VIRTUAL TABLE z USING zipfile('x.zip');",
            "in/s.sql:1: no such module: zipfile: in the statement CREATE VIRTUAL TABLE z USING zipfile('x.zip'). zipfile "
                + "is a table of the sqlite3 shell, not of SQLite. Leave it out, or compute the values before "
                + "the build."),
        Case(
            "collation", "SELECT 1 ORDER BY 1 COLLATE uint;",
            "in/s.sql:1: no such collation sequence: uint: in the statement SELECT 1 ORDER BY 1 COLLATE uint. uint is a "
                + "collation of the sqlite3 shell, not of SQLite: every app would have to define the collation."),
    ]

    private static let list =
        ".bail, .echo, .exit, .headers, .import, .mode, .nullvalue, .print, .quit, .read, .separator"

    private static let commands: [Case] = [
        Case(
            "unknown", "SELECT 1;\n.imports a b\n",
            "in/s.sql:2: unknown command .imports: a build supports only \(list). Did you mean \"import\"?"),
        Case(
            "shell", ".shell rm x\n",
            "in/s.sql:1: unknown command .shell: a build supports only \(list). A script that runs other programs is not "
                + "repeatable; run them before the build."),
        Case("dot alone", ".\n", "in/s.sql:1: unknown command .: a build supports only \(list)"),
        Case(
            "mode", ".mode columns\n",
            "in/s.sql:1: .mode columns is not supported: the supported modes are ascii, csv, list, "
                + "tabs"),
        Case("flag", ".bail maybe\n", "in/s.sql:1: invalid .bail command. Usage: .bail on|off"),
        Case("separator", ".separator\n", "in/s.sql:1: invalid .separator command. Usage: .separator COL [ROW]"),
        Case("read", ".read a b\n", "in/s.sql:1: invalid .read command. Usage: .read FILE"),
        Case(
            "import without a table", ".import food.csv\n",
            "in/s.sql:1: invalid .import command: TABLE is missing. Usage: .import [--csv|--ascii] [--skip N] "
                + "[--schema S] [-v] FILE TABLE"),
        Case(
            "import's option", ".import --cvs food.csv t\n",
            "in/s.sql:1: invalid .import command: unknown option --cvs. Did you mean \"--csv\"? Usage: .import "
                + "[--csv|--ascii] [--skip N] [--schema S] [-v] FILE TABLE"),
        Case(
            "semicolon", "CREATE TABLE t(a);\n.import food.csv t;\n",
            "in/s.sql:2: .import ends with \";\": a dot command ends with its line, and the \";\" would be part of its last "
                + "word. Remove the semicolon."),
        Case(
            "separators that cannot be read", "CREATE TABLE t(a);\n.separator ||\n.import food.csv t\n",
            "in/s.sql:3: .import cannot read rows: the column separator \"||\" has 2 bytes, and only one byte is supported. Set "
                + "one-byte separators with .mode csv and .separator, or use .import --csv."),
        Case(
            "tabs after csv", "CREATE TABLE t(a);\n.mode csv\n.mode tabs\n.import food.csv t\n",
            "in/s.sql:4: .import cannot read rows: the row separator \"\\r\\n\" has 2 bytes, and only one byte is supported. Set "
                + "one-byte separators with .mode csv and .separator, or use .import --csv."),
        Case(
            "a row that fails", "CREATE TABLE t(a, b NOT NULL);\n.import --csv food.csv t\n",
            "in/food.csv:2: INSERT failed: NOT NULL constraint failed: t.b: in/s.sql:2 imports the row into the table t. "
                + "Fix the row, or add .bail off to the script to skip such rows."),
        Case(
            "an empty file without a table", ".import --csv none.csv t\n",
            "in/s.sql:1: in/none.csv is empty: the table t would be created from the first row of the file"
        ).with { $0.files["none.csv"] = "" },
        Case(
            "a column's name that is not UTF-8", ".import --csv x.csv t\n",
            "in/s.sql:1: in/x.csv:1: a column name is not UTF-8. Save the file as UTF-8."
        ).with { $0.files["x.csv"] = ["a,", 0xE4, "\n"] },
        Case(
            "a view", "CREATE VIEW v AS SELECT 1 a, 2 b;\n.import --csv food.csv v\n",
            "in/s.sql:2: cannot import in/food.csv into v: cannot modify v because it is a view"),
        Case(
            "generated columns", "CREATE TABLE t(a, b AS (a));\n.import --csv food.csv t\n",
            "in/s.sql:2: cannot import in/food.csv into t: table t has 1 columns but 2 values were supplied"),
        Case(
            "no such schema", ".import --csv --schema x food.csv t\n",
            "in/s.sql:1: cannot create the table t from the first row of in/food.csv: unknown database \"x\""),
    ]

    private static let paths: [Case] = [
        Case(
            "missing", "CREATE TABLE t(a);\n.import fod.csv t\n",
            "in/s.sql:2: cannot open in/fod.csv: no such file. Paths are relative to the directory of the script, in."
        ),
        Case("directory", ".read .\n", "in/s.sql:1: cannot open in/.: it is not a regular file"),
        Case(
            "program", ".import \"|cat food.csv\" t\n",
            "in/s.sql:1: cannot open in/|cat food.csv: a script that runs other programs is not repeatable. Write the output of cat food.csv to a file first."
        ),
        Case(
            "parent", ".import ../outside.csv t\n",
            "in/s.sql:1: in/../outside.csv is not in the directory of the script: its real path is outside.csv, and the script is in in. Move the file there, or build with --allow-outside."
        ).with { $0.outcome = .refused },
        Case(
            "link", ".import link.csv t\n",
            "in/s.sql:1: in/link.csv is not in the directory of the script: its real path is outside.csv, and the script is in "
                + "in. Move the file there, or build with --allow-outside."
        ).with { $0.outcome = .refused },
        Case(
            "outside in spite of .bail off", ".bail off\n.read ../outside.sql\n",
            "in/s.sql:2: in/../outside.sql is not in the directory of the script: its real path is outside.sql, and the script is in in. Move the file there, or build with --allow-outside."
        ).with { $0.outcome = .refused },
        Case(
            "absolute", ".read /etc/hostname\n",
            "in/s.sql:1: /etc/hostname is not in the directory of the script: its real path is /etc/hostname, and the script is in in. Move the file there, or build with --allow-outside."
        ).with { $0.outcome = .refused },
        Case(
            "attached", "ATTACH '../other.db' AS o;",
            "in/s.sql:1: unable to open database: ../other.db: No such file or directory: in the statement ATTACH '../other.db' AS o. other.db is not "
                + "in the directory of the script, in: move it there, or build with --allow-outside."),
        Case(
            "attached by another VFS", "ATTACH 'file:/etc/x?vfs=unix' AS o;",
            "in/s.sql:1: not authorized: in the statement ATTACH 'file:/etc/x?vfs=unix' AS o. Attach files by path "
                + "instead of by URI, and load no extensions: a build reads only files in the directory of its script."),
        Case(
            "attached by another VFS, encoded", "ATTACH 'file:/etc/x?%76fs=unix' AS o;",
            "in/s.sql:1: not authorized: in the statement ATTACH 'file:/etc/x?%76fs=unix' AS o. Attach files by path "
                + "instead of by URI, and load no extensions: a build reads only files in the directory of its script."),
        Case(
            "vacuumed elsewhere", "CREATE TABLE t(a); VACUUM INTO '../copy.db';",
            "in/s.sql:1: unable to open database: ../copy.db: No such file or directory: in the statement VACUUM INTO '../copy.db'. copy.db is not in "
                + "the directory of the script, in: move it there, or build with --allow-outside."),
        Case(
            "read in a circle", ".read s.sql\n",
            "in/s.sql:1: .read is nested 25 deep: a script that reads itself never ends"),
    ]

    private static let substitutions: [Case] = [
        Case(
            "undefined", "SELECT 1;\nSELECT '${VERSON}';",
            "in/s.sql:2: ${VERSON} has no value: no --define option sets it. Specify it with --define VERSON=VALUE. For the literal text, write $${VERSON}."
        ),
        Case(
            "near another", ".print ${env.HOMER}\n",
            "in/s.sql:1: ${env.HOMER} has no value: no such environment variable is set. Did you mean \"env.HOME\"? For the literal text, write $${env.HOMER}."
        ).with { $0.environment = ["HOME": "/x"] },
        Case(
            "git", "SELECT '${git.descibe}';",
            "in/s.sql:1: ${git.descibe} has no value: no --define option sets it. Did you mean \"git.describe\"? For the literal text, write $${git.descibe}."
        ),
        Case(
            "no repository", "SELECT ${git.count};",
            "in/s.sql:1: ${git.count}: cannot read the Git revision of in: fatal: not a git repository "
                + "(or any of the parent directories): .git. Build in a git repository with a commit, or specify the value with --define."
        ),
        Case("bracket", "SELECT 1 AS [a${env.X}];", "in/s.sql:1: ${env.X} cannot be used here: its value has a ]").with
        {
            $0.environment = ["X": "b]c"]
        },
    ]
}
