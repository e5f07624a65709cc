/// Unusual files, and scripts that import them.
enum RowCases {
    /// Files for `.import --csv` into a table of two columns.
    static let csv: [(String, Bytes)] = [
        ("plain", "1,2\n3,4\n"),
        ("no line feed at the end", "1,2\n3,4"),
        ("CRLF", "1,2\r\n3,\"4\"\r\n"),
        ("CRLF, none at the end", "1,2\r\n3,4"),
        ("only CR", "1,2\r3,4\r"),
        ("CR CR LF", "1,2\r\r\n3,4\r\n"),
        ("CR CR LF after a quote", "1,\"2\"\r\r\n3,4\r\n"),
        ("CR in the middle", "1,a\rb\n\"c\rd\",2\n"),
        ("CR after a quote, then text", "\"a\"\rb\",2\n3,4\n"),
        ("CR after a quote, then a separator", "\"a\"\r,2\n3,4\n"),
        ("CR after a quote, then the end", "1,\"a\"\r"),
        ("empty file", ""),
        ("one line feed", "\n"),
        ("empty lines", "\n\n1,2\n\n3,4\n\n"),
        ("empty lines with CR", "\r\n\r\n1,2\r\n"),
        ("empty fields", "1,\n,2\n,\n"),
        ("empty quoted fields", "\"\",\"\"\n"),
        ("separator before the end", "1,"),
        ("separator before the line feed at the end", "1,\n"),
        ("extra separator before the end", "1,2,"),
        ("only a separator", ","),
        ("quoted", "\"a\",\"b\"\n"),
        ("doubled quotes", "\"a\"\"b\",2\n\"\"\"\",\"\"\"\"\"\"\n"),
        ("doubled quotes at the end of a field", "\"a\"\"\",\"b\"\"\"\n"),
        ("quotes in the middle", "a\"b,c\"\"d\n"),
        ("text after the closing quote", "\"a\"x,2\n3,4\n"),
        ("text after the closing quote, quoted again", "\"a\"x\",2\n3,4\n"),
        ("two unescaped quotes", "\"a\"b\"c\",2\n"),
        ("unescaped and doubled", "\"a\"\"b\"c\"\"d\",2\n"),
        ("space around quotes", " \"1\" , 2 \n\"a\" ,b\n"),
        ("never closed", "\"a,2\n3,4\n"),
        ("never closed, several lines", "1,2\n\"a\n\nb\n1,2"),
        ("a quote alone at the end", "1,\""),
        ("two quotes at the end", "1,\"\""),
        ("three quotes at the end", "1,\"a\"\""),
        ("only a quote", "\""),
        ("a quote and a line feed", "\"\n"),
        ("doubled quote that closes nothing", "\"a\"\",b\n1,2\n"),
        ("doubled quote before CRLF", "\"a\"\"\r\n3,4\n"),
        ("three quotes before CRLF", "\"a\"\"\"\r\n3,4\n"),
        ("embedded line feeds", "\"a\nb\",\"c\r\nd\"\ne,f\n"),
        ("embedded separators", "\"a,b\",\",\"\n"),
        ("line numbers after embedded line feeds", "\"a\n\nb\"x\ny\",3\n1\n"),
        ("line numbers after an unescaped quote", "1,\"2\",\"3\n4\"\n5"),
        ("unescaped over two rows", "\"a\",\"b\" x\n\"c\",d\"e\n"),
        ("too few", "1\n2,3\n4\n"),
        ("too many", "1,2,3\n4,5,6,7\n8,9\n"),
        ("too many, quoted, with line feeds", "1,2,\"3\n\n\",4\n5,6,7\n"),
        ("byte order mark", ["", 0xEF, 0xBB, 0xBF, "a,b\n1,2\n"]),
        ("byte order mark before a quote", ["", 0xEF, 0xBB, 0xBF, "\"a\",b\n"]),
        ("byte order mark alone", ["", 0xEF, 0xBB, 0xBF]),
        ("byte order mark and a line feed", ["", 0xEF, 0xBB, 0xBF, "\n1,2\n"]),
        ("two byte order marks", ["", 0xEF, 0xBB, 0xBF, "", 0xEF, 0xBB, 0xBF, "a,b\n"]),
        ("half a byte order mark", ["", 0xEF, 0xBB, ",b\n"]),
        ("a third of a byte order mark", ["", 0xEF, "\n1,b\n"]),
        ("byte order mark in the second row", ["1,2\n", 0xEF, 0xBB, 0xBF, "3,4\n"]),
        ("NUL", ["1,a", 0, "b\n", 0, ",x\n"]),
        ("NUL in quotes", ["1,\"a", 0, "b\"\n\"", 0, "\",x\n"]),
        ("NUL after a doubled quote", ["\"a\"\"", 0, "b\",x", 0]),
        ("not UTF-8", ["1,", 0xFF, 0xFE, "\n\"", 0xC3, "\",", 0xE2, 0x82, "\n", 0xED, 0xA0, 0x80, ",2\n"]),
        ("UTF-8", "ä,€\n\"𝄞\",\"日本\"\n"),
        ("numbers stay text", "1,2.50\n0x10,1e3\n"),
        ("long field", Bytes(stringLiteral: String(repeating: "x", count: 300_000) + ",\"y\"\n1,2\n")),
        ("long quoted field", Bytes(stringLiteral: "\"" + String(repeating: "x\"\"\n", count: 200_000) + "\",y\n1\n")),
    ]

    static let scripts: [DifferentialCase] = [
        .init("tabs", "CREATE TABLE t(a,b);\n.mode tabs\n.import t t\n", ["t": "1\t\"2\"\n\"3\t4\"\t5\n"]),
        .init("list", "CREATE TABLE t(a,b);\n.import t t\n", ["t": "1|\"2\"\n\"3|4\"|5\n"]),
        .init(
            "ascii", "CREATE TABLE t(a,b);\n.mode ascii\n.import t t\n",
            ["t": ["\"1\"", 0x1F, "2\n", 0x1E, "", 0x1E, "3", 0x1F, "4"]]),
        .init(
            "ascii option", "CREATE TABLE t(a,b);\n.import --ascii t t\n",
            ["t": ["1", 0x1F, "2", 0x1E, "", 0x1F, "b", 0x1F, "c", 0x1E, "", 0x1E, "3", 0x1F]]),
        .init("ascii, new table", ".mode ascii\n.import t t\n", ["t": ["a", 0x1F, "b", 0x1E, "1", 0x1F, "2", 0x1E]]),
        .init(
            "ascii, byte order mark", "CREATE TABLE t(a,b);\n.mode ascii\n.import t t\n",
            ["t": ["", 0xEF, 0xBB, 0xBF, "a", 0x1F, "b", 0x1E]]),
        .init(
            "ascii with other separators", "CREATE TABLE t(a,b);\n.mode ascii\n.separator , |\n.import t t\n",
            ["t": "1,2|3,\"4|\n5,6"]),
        .init(
            "csv read in ascii mode", "CREATE TABLE t(a,b);\n.mode ascii\n.import --csv t t\n",
            ["t": "1,2\n\n3,\"4\"\n"]),
        .init("separator", "CREATE TABLE t(a,b);\n.mode csv\n.separator |\n.import t t\n", ["t": "1|2\n3|\"a|b\"\n"]),
        .init("semicolon", "CREATE TABLE t(a,b);\n.separator ;\n.import t t\n", ["t": "1;2\n3;\"a;b\"\n"]),
        .init(
            "separator and CRLF", "CREATE TABLE t(a,b);\n.mode csv\n.separator | \"\\r\\n\"\n.import t t\n",
            ["t": "1|2\r\n3|4\r\n"]),
        .init("row separator", "CREATE TABLE t(a,b);\n.separator , ;\n.import t t\n", ["t": "1,2;3,4\n;5,6"]),
        .init(
            "CR between rows", "CREATE TABLE t(a,b);\n.separator , \"\\r\"\n.import t t\n",
            ["t": "1,\"2\"\r\r3,\"4\"\r5,6"]),
        .init("escapes", "CREATE TABLE t(a,b);\n.separator \"\\t\"\n.import t t\n", ["t": "1\t2\n"]),
        .init("escapes without quotes", "CREATE TABLE t(a,b);\n.separator \\t\n.import t t\n", ["t": "1\t2\n"]),
        .init("octal", "CREATE TABLE t(a,b);\n.separator \"\\054\" \\73\n.import t t\n", ["t": "1,2;3,4"]),
        .init(
            "quote as separator in ascii", "CREATE TABLE t(a,b);\n.mode ascii\n.separator '\"'\n.import t t\n",
            ["t": ["1\"2", 0x1E]]),
        .init("list after csv", "CREATE TABLE t(a,b);\n.mode csv\n.mode list\n.import t t\n", ["t": "1|2\n3|4\n"]),
        .init(
            "ascii after csv", "CREATE TABLE t(a,b);\n.mode csv\n.mode ascii\n.import t t\n", ["t": ["1", 0x1F, "2"]]),
        .init(
            "skip", "CREATE TABLE t(a,b);\n.import -skip 2 --csv t t\n.import --csv --skip 9 t t\n",
            ["t": "1,2\n\"x\ny\",5\nx,6\n"]),
        .init(
            "skip passes a byte order mark", "CREATE TABLE t(a,b);\n.import --csv --skip 1 t t\n",
            ["t": ["", 0xEF, 0xBB, 0xBF, "a,b\n", 0xEF, 0xBB, 0xBF, "1,2\n"]]),
        .init("skip before a header", ".import --csv --skip 1 t t\n", ["t": "x\"\"\na,b\n1,2\n"]),
        .init(
            "schema temp", ".import --schema temp --csv t t\nCREATE TABLE u AS SELECT * FROM temp.t;",
            ["t": "a,b\n1,2\n"]),
        .init("schema main", ".import --schema main --csv t t\n.import --csv --schema MAIN t T\n", ["t": "a,b\n1,2\n"]),
        .init(
            "attached schema",
            "ATTACH ':memory:' AS x;\n.import --schema x --csv t t\nCREATE TABLE u AS SELECT * FROM x.t;",
            ["t": "a,b\n1,2\n"]),
        .init("a name with a dot", ".import --csv t x.t\n", ["t": "a,b\n1,2\n"]),
        .init("a name with quotes", ".import --csv t 'x\"y z'\n", ["t": "a,b\n1,2\n"]),
        .init("repeated names", ".import --csv t t\n", ["t": "a,A,b,,,\"x\"\"y\",a\n1,2,3,4,5,6,7\n"]),
        .init("repeated names that hit others", ".import --csv t t\n", ["t": "a,a,A_1,a_2\n1,2,3,4\n"]),
        .init("repeated names, two zeros", ".import --csv t t\n", ["t": "a,a,a_1,a_01\n1,2,3,4\n"]),
        .init("repeated names, thirteen columns", ".import --csv t t\n", ["t": "a,a,c,d,e,f,g,h,i,a,k,l,m\n"]),
        .init("names of rowid", ".import --csv t t\n", ["t": "rowid,oid,_rowid_\n1,2,3\n"]),
        .init(
            "affinities", "CREATE TABLE t(a INT, b REAL, c NUMERIC, d TEXT, e BLOB);\n.import --csv t t\n",
            ["t": "1,2,3,4,5\n1.5,x,0x10,1e3,x\n, 7 ,,,\n9223372036854775808,1e400,-0,007,8\n"]),
        .init(
            "integer primary key", "CREATE TABLE t(a INTEGER PRIMARY KEY, b);\n.import --csv t t\n", ["t": "5,x\n3,y\n"]
        ),
        .init(
            "NULL into an integer primary key", "CREATE TABLE t(b, a INTEGER PRIMARY KEY);\n.import --csv t t\n",
            ["t": "x\ny\n"]),
        .init(
            "without rowid", "CREATE TABLE t(a PRIMARY KEY, b) WITHOUT ROWID;\n.import --csv t t\n", ["t": "5,x\n3,y\n"]
        ),
        .init("one column", "CREATE TABLE t(a);\n.import --csv t t\n", ["t": "a,b\n\n\"x\"\n"]),
        .init("three columns, separator at the end", "CREATE TABLE t(a,b,c);\n.import --csv t t\n", ["t": "1,2,3\n4,"]),
        .init(
            "view with a trigger",
            "CREATE TABLE u(x,y);CREATE VIEW v AS SELECT x,y FROM u;\n"
                + "CREATE TRIGGER i INSTEAD OF INSERT ON v BEGIN INSERT INTO u VALUES(new.x, new.y); END;\n.import --csv t v\n",
            ["t": "1,2\n3,4\n"]),
        .init(
            "rows that fail", ".bail off\nCREATE TABLE t(a PRIMARY KEY, b NOT NULL);\n.import --csv t t\n",
            ["t": "1,2\n1,3\n2\n4,5\n"]),
        .init(
            "rows that fail last", ".bail off\nCREATE TABLE t(a INTEGER PRIMARY KEY, b);\n.import --csv t t\n",
            ["t": "1,2\nx,5\n"]),
        .init(
            "a transaction around",
            "CREATE TABLE t(a,b);BEGIN;\n.import --csv t t\nROLLBACK;BEGIN;\n.import --csv t t\nCOMMIT;",
            ["t": "1,2\n"]),
        .init(
            "conflict that rolls back",
            ".bail off\nCREATE TABLE t(a UNIQUE ON CONFLICT ROLLBACK,b);\n.import --csv t t\n",
            ["t": "1,2\n3,4\n1,5\n6,7\n"]),
        .init("abbreviations", "CREATE TABLE t(a,b);\n.mod csv\n.sep ;\n.imp t t\n", ["t": "1;2\n"]),
        .init(
            "a row of more fields than any table has columns", "CREATE TABLE t(a,b);\n.import --csv t t\n",
            ["t": Bytes(stringLiteral: "1,2\n3" + String(repeating: ",x", count: 200_000) + "\n4,5\n")]),
        .init(
            "many short rows", "CREATE TABLE t(a,b);\n.import --csv t t\n",
            ["t": Bytes(stringLiteral: String(repeating: ",\n", count: 150_000))]),
        .init("path in a directory", "CREATE TABLE t(a,b);\n.import --csv rows/./t.csv t\n", ["rows/t.csv": "1,2\n"]),
    ]
}
