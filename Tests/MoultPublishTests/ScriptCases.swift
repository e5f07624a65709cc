/// Ordinary and unusual scripts.
enum ScriptCases {
    /// The script from the build of an app, unchanged.
    static let food = DifferentialCase(
        "food",
        """
        CREATE TABLE "food" ("pk" INTEGER PRIMARY KEY NOT NULL, "group" INTEGER, "name" TEXT, "desc" TEXT);
        CREATE TABLE "version" ("ver" INTEGER);
        .mode csv
        .separator |
        .import food.csv food
        CREATE INDEX idx_food_pk ON food ("pk" ASC);
        INSERT INTO version (ver) VALUES ("2");
        """,
        [
            "food.csv":
                "1|100|Butter, salted|\"17 g | 1 tbsp\"\n2|100|Cheese, blue|28 g\r\n3|200|\"Spices, \"\"allspice\"\"\"|\n"
        ])

    static let all: [DifferentialCase] = [
        food,
        .init("empty", ""),
        .init("nothing but comments", "-- a\n/* b\n.print no\n*/\n# c\n   \n;;\n"),
        .init("several lines", "CREATE TABLE t(\n a, -- one\n b /* two; */\n)\n;\nINSERT INTO t\nVALUES(1,\n\n2);\n"),
        .init(
            "several statements in a line", "CREATE TABLE t(a); INSERT INTO t VALUES(1); INSERT INTO t\nVALUES(2);\n"),
        .init("no semicolon at the end", "CREATE TABLE t(a);\nINSERT INTO t VALUES(1)"),
        .init(
            "semicolons in quotes",
            "CREATE TABLE \"a;b\"([c;d], `e;f`);\nINSERT INTO \"a;b\" VALUES('x;\n;y', ';''');\n"),
        .init("quotes over lines", "CREATE TABLE t(a);INSERT INTO t VALUES('a\n.print b\n\n# c\n-- d\n/\ngo\n');\n"),
        .init(
            "CRLF",
            "CREATE TABLE t(a);\r\nINSERT INTO t VALUES('a\r\nb');\r\n.mode csv\r\n.print x\r\nSELECT a FROM t;\r\n"),
        .init("CR in the middle of a line", "CREATE TABLE t(a);INSERT INTO t\rVALUES('a\rb');\n"),
        .init(
            "trigger",
            """
            CREATE TABLE t(a); CREATE TABLE log(b);
            CREATE TRIGGER r AFTER INSERT ON t BEGIN
              INSERT INTO log VALUES(CASE WHEN new.a > 1 THEN 'big' ELSE 'small' END);
              UPDATE log SET b = b || ';' WHERE b = 'big';
            END;
            CREATE TEMP TRIGGER s AFTER DELETE ON t BEGIN INSERT INTO log VALUES('gone;'); END;
            INSERT INTO t VALUES(1); INSERT INTO t VALUES(2); DELETE FROM t WHERE a = 1;
            """),
        .init(
            "names like keywords", "CREATE TABLE trigger_end(create_ a, \"end\");INSERT INTO trigger_end VALUES(1,2);\n"
        ),
        .init(
            "go and slash",
            "CREATE TABLE t(a)\ngo\nINSERT INTO t VALUES(1)\n/\nINSERT INTO t VALUES('6\n/\n2')\n  GO  \n.print x\n"),
        .init("blank lines end comments", "-- c\n.print a\n/* x */ -- y\n.print b\n"),
        .init(
            "commands right after statements",
            "SELECT 1;\n.print a\nSELECT 2; -- c\n.print b\nSELECT 3; /* d\n.print no\n*/\n.print e\n"),
        .init(
            "print",
            ".print a  b \"c\\td\" 'e\\tf' g\\\\n \"unterminated\n.print\n.print \"a\"b\"c\" d\n.print a;\n.print \\101\\60 \"\\\"\" \\q\n"
        ),
        .init(
            "echo", ".echo on\nSELECT 1;\n.print x\nSELECT\n2;\n-- c\n\nSELECT 3; -- d\n.echo off\nSELECT 4;\n"),
        .init(
            "headers", ".headers on\nSELECT 1 AS a, NULL AS \"b c\";\nSELECT 1 AS x WHERE 0;\n.headers off\nSELECT 2;\n"
        ),
        .init(
            "null value",
            "SELECT NULL;\n.nullvalue NULL\nSELECT NULL, 'NULL';\n.mode csv\n.nullvalue 'N,L'\nSELECT NULL, 'N,L';\n"),
        .init(
            "csv output",
            ".headers on\n.mode csv\nSELECT 'a b' AS \"x y\", 'c\"d' AS \"e\"\"f\", 'e\nf' AS a, 'g,h' AS b, 'i''j' AS c, "
                + "'' AS d, 1.5 AS e, x'41' AS f, 'é' AS g, 'a;b' AS h, '~!%' AS i, char(127) AS j;\n"
                + ".separator |\nSELECT 'a|b', 'a,b';\n"),
        .init(
            "output in other modes",
            ".mode tabs\nSELECT 1,'a\tb';\n.mode ascii\nSELECT 1,2;\n.mode list\nSELECT 1,2;\n.separator a b\nSELECT 1,2,3;\n"
        ),
        .init(
            "numbers",
            "SELECT 1.0, 1e100, 9e999, 0.1, 100000000000000000.0, 2.5e-7, -0.0, 9223372036854775807, 'a' || char(0) || 'b';\n"
        ),
        .init(
            "csv ends rows with LF after an import",
            "CREATE TABLE t(a);\n.mode csv\nSELECT 1;\n.import t t\nSELECT * FROM t;\n", ["t": "x\n"]),
        .init(
            "read", "CREATE TABLE t(a);\n.read more/rows.sql\n.read 'more/open end.sql'\nINSERT INTO t VALUES(9);\n",
            [
                "more/rows.sql": "INSERT INTO t VALUES(1);\n.mode csv\n.import more/t.csv t\n", "more/t.csv": "\"2\"\n",
                "more/open end.sql": "INSERT INTO t VALUES(3)",
            ]),
        .init("a statement around read", "CREATE TABLE t(a, '\n.read x.sql\n');\n", ["x.sql": "SELECT 1;\n"]),
        .init(
            "exit", "CREATE TABLE t(a);\n.read x.sql\nCREATE TABLE no(a);\n",
            ["x.sql": "CREATE TABLE u(a);\n.exit\nCREATE TABLE no(a);\n"]),
        .init("quit", "CREATE TABLE t(a);\n.quit\nthis is not SQL"),
        .init(
            "double-quoted strings",
            "CREATE TABLE t(a DEFAULT \"x\", b CHECK(b <> \"y\"));\nINSERT INTO t(b) VALUES(\"it's\");\nCREATE INDEX i ON t(a) WHERE a <> \"z\";\nCREATE VIEW v AS SELECT \"q\" AS c FROM t;\nSELECT * FROM v;\nUPDATE t SET a = \"b\" WHERE \"b\" = \"it's\";\n"
        ),
        .init(
            "errors passed over",
            ".bail off\nCREATE TABLE t(a);\nINSERT INTO nowhere VALUES(1);\nINSERT INTO t VALUES(1); SELECT x; INSERT INTO t VALUES(2);\nsyntax;\nINSERT INTO t VALUES(3);\n.import none t\nINSERT INTO t VALUES(4);\n"
        ),
        .init(
            "transactions",
            "BEGIN;CREATE TABLE t(a);\nINSERT INTO t VALUES(1);\nSAVEPOINT s;INSERT INTO t VALUES(2);ROLLBACK TO s;COMMIT;\n"
        ),
        .init("rollback", "CREATE TABLE t(a);BEGIN;INSERT INTO t VALUES(1);DROP TABLE t;ROLLBACK;\n"),
        .init(
            "constraint inside a statement",
            ".bail off\nCREATE TABLE t(a UNIQUE);INSERT INTO t VALUES(1);\nINSERT INTO t VALUES(2),(3),(1);\nINSERT OR IGNORE INTO t VALUES(4),(1);\n"
        ),
        .init(
            "schema of all kinds",
            "CREATE TABLE a(i INTEGER PRIMARY KEY AUTOINCREMENT, b AS (i*2), c AS (i+1) STORED) STRICT;\n".replacing(
                " AS (i*2)", with: " INT AS (i*2)"
            ).replacing("c AS", with: "c INT AS")
                + "INSERT INTO a(i) VALUES(5);CREATE TABLE b(x PRIMARY KEY, y REFERENCES a) WITHOUT ROWID;\nINSERT INTO b VALUES('k', 5);CREATE UNIQUE INDEX u ON b(y DESC, lower(x)) WHERE y > 0;\nCREATE VIEW v AS SELECT * FROM a JOIN b ON y = i;ANALYZE;\n"
        ),
        .init(
            "pragmas",
            "PRAGMA page_size = 1024;PRAGMA encoding = 'UTF-16le';PRAGMA auto_vacuum = 1;CREATE TABLE t(a);INSERT INTO t VALUES('é');PRAGMA user_version = 7;PRAGMA application_id = 9;\nPRAGMA page_size;PRAGMA encoding;PRAGMA user_version;PRAGMA application_id;PRAGMA auto_vacuum;\n"
        ),
        .init(
            "blobs and text",
            "CREATE TABLE t(a);INSERT INTO t VALUES(x'00ff'), (CAST(x'ff41' AS TEXT)), (''), (x''), (NULL), (zeroblob(9000));\n"
        ),
        .init(
            "attach in memory",
            "ATTACH ':memory:' AS m; CREATE TABLE m.t(a); INSERT INTO m.t VALUES(1); CREATE TABLE t AS SELECT * FROM m.t; DETACH m;\n"
        ),
    ]
}
