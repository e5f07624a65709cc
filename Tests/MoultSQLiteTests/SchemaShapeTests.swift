import MoultBasics
import MoultSQLite
import TestSupport
import Testing

/// Two schemas, and their differences.
struct SchemaPair: CustomTestStringConvertible, Sendable {
    var testDescription: String
    var first: String
    var second: String

    init(_ testDescription: String, _ first: String, _ second: String) {
        self.testDescription = testDescription
        self.first = first
        self.second = second
    }
}

@Suite struct SchemaShapeTests {
    let scratch: Scratch

    init() throws { scratch = try Scratch() }

    @Test(arguments: [
        SchemaPair("white space", "CREATE TABLE t(a INTEGER,b)", "CREATE  TABLE t (\n a\tINTEGER ,\n b )"),
        SchemaPair("comments", "CREATE TABLE t (a, b)", "CREATE TABLE t (a, -- first\n /* second, */ b)"),
        SchemaPair(
            "case of keywords", "CREATE TABLE t (a NOT NULL CHECK (a IN (1)))",
            "create table t (a not null check (a in (1)))"),
        SchemaPair("case of types", "CREATE TABLE t (a varchar(10))", "CREATE TABLE t (a VARCHAR ( 10 ))"),
        SchemaPair("quotes of names", "CREATE TABLE t (a, \"desc\")", "CREATE TABLE [t] (`a`, [desc])"),
        SchemaPair("quotes in a check", "CREATE TABLE t (a CHECK (a > 0))", "CREATE TABLE t (a CHECK (\"a\" > 0))"),
        SchemaPair(
            "names of constraints", "CREATE TABLE t (a, CHECK (a > 0))",
            "CREATE TABLE t (a, CONSTRAINT c CHECK (a > 0))"),
        SchemaPair(
            "order of creation",
            "CREATE TABLE t (a); CREATE TABLE u (b); CREATE INDEX i ON t (a); CREATE INDEX j ON u (b)",
            "CREATE TABLE u (b); CREATE INDEX j ON u (b); CREATE TABLE t (a); CREATE INDEX i ON t (a)"),
        SchemaPair(
            "primary key of the column or of the table", "CREATE TABLE t (a INTEGER PRIMARY KEY)",
            "CREATE TABLE t (a INTEGER, PRIMARY KEY (a))"),
        SchemaPair(
            "unique of the column or of the table", "CREATE TABLE t (a UNIQUE, b)", "CREATE TABLE t (a, b, UNIQUE (A))"),
        SchemaPair(
            "order of constraints", "CREATE TABLE t (a, b, UNIQUE (a), UNIQUE (b))",
            "CREATE TABLE t (a, b, UNIQUE (b), UNIQUE (a))"),
        SchemaPair(
            "a column added later", "CREATE TABLE t (a); ALTER TABLE t ADD COLUMN b TEXT NOT NULL DEFAULT ''",
            "CREATE TABLE t (a, b TEXT NOT NULL DEFAULT '')"),
        SchemaPair(
            "a table renamed", "CREATE TABLE old (a); CREATE INDEX i ON old (a); ALTER TABLE old RENAME TO t",
            "CREATE TABLE t (a); CREATE INDEX i ON t (a)"),
        SchemaPair(
            "foreign key of the column or of the table",
            "CREATE TABLE p (k PRIMARY KEY); CREATE TABLE t (a REFERENCES p (k) ON DELETE CASCADE)",
            "CREATE TABLE p (k PRIMARY KEY); CREATE TABLE t (a, FOREIGN KEY (a) REFERENCES P (K) ON DELETE CASCADE NOT DEFERRABLE)"
        ),
        SchemaPair(
            "spelling of an index", "CREATE TABLE t (a, b); CREATE INDEX i ON t (a, lower(b)) WHERE b IS NOT NULL",
            "CREATE TABLE t (a, b); CREATE INDEX IF NOT EXISTS main.i ON T(\"a\" ASC,LOWER( b ))WHERE \"b\" is not null"
        ),
        SchemaPair(
            "spelling of a view", "CREATE TABLE t (a); CREATE VIEW v AS SELECT a AS x FROM t",
            "CREATE TABLE t (a); CREATE VIEW IF NOT EXISTS v AS select A as \"x\" from \"t\" /* all */"),
        SchemaPair(
            "spelling of a trigger",
            "CREATE TABLE t (a); CREATE TRIGGER g AFTER INSERT ON t BEGIN DELETE FROM t WHERE a = NEW.a; END",
            "CREATE TABLE t (a); CREATE TRIGGER g after insert on \"t\" begin delete from [t] where \"a\"=new.\"a\" ; end"
        ),
        SchemaPair(
            "spelling of a number", "CREATE TABLE t (a DEFAULT 0X1f, b DEFAULT 1E5)",
            "CREATE TABLE t (a DEFAULT 0x1F, b DEFAULT 1e5)"),
        SchemaPair(
            "a text in double quotes", "CREATE TABLE t (a DEFAULT 'x''y')", "CREATE TABLE t (a DEFAULT \"x'y\")"),
        SchemaPair(
            "statistics", "CREATE TABLE t (a); CREATE INDEX i ON t (a)",
            "CREATE TABLE t (a); CREATE INDEX i ON t (a); INSERT INTO t VALUES (1); ANALYZE"),
    ])
    func `equal schemas have the same shape`(_ pair: SchemaPair) throws {
        let (first, second) = (try SchemaShape(madeBy: pair.first), try SchemaShape(madeBy: pair.second))
        #expect(first.canonicalText == second.canonicalText)
        #expect(first.diff(against: second) == [])
        #expect(first == second)
    }

    @Test(arguments: [
        SchemaPair("a type", "CREATE TABLE t (a INTEGER)", "CREATE TABLE t (a TEXT)"),
        SchemaPair("a row id or not", "CREATE TABLE t (a INTEGER PRIMARY KEY)", "CREATE TABLE t (a INT PRIMARY KEY)"),
        SchemaPair(
            "autoincrement", "CREATE TABLE t (a INTEGER PRIMARY KEY)",
            "CREATE TABLE t (a INTEGER PRIMARY KEY AUTOINCREMENT)"),
        SchemaPair("not null", "CREATE TABLE t (a)", "CREATE TABLE t (a NOT NULL)"),
        SchemaPair(
            "not null on conflict", "CREATE TABLE t (a NOT NULL)", "CREATE TABLE t (a NOT NULL ON CONFLICT REPLACE)"),
        SchemaPair(
            "unique on conflict", "CREATE TABLE t (a, UNIQUE (a))", "CREATE TABLE t (a, UNIQUE (a) ON CONFLICT IGNORE)"),
        SchemaPair("a default", "CREATE TABLE t (a DEFAULT 'x')", "CREATE TABLE t (a DEFAULT 'X')"),
        SchemaPair(
            "a default text in double quotes", "CREATE TABLE t (a DEFAULT \"x\")", "CREATE TABLE t (a DEFAULT \"X\")"),
        SchemaPair("order of columns", "CREATE TABLE t (a, b)", "CREATE TABLE t (b, a)"),
        SchemaPair(
            "order in the primary key", "CREATE TABLE t (a, b, PRIMARY KEY (a, b))",
            "CREATE TABLE t (a, b, PRIMARY KEY (b, a))"),
        SchemaPair("a collation", "CREATE TABLE t (a TEXT)", "CREATE TABLE t (a TEXT COLLATE NOCASE)"),
        SchemaPair("a check", "CREATE TABLE t (a CHECK (a > 0))", "CREATE TABLE t (a CHECK (a > 1))"),
        SchemaPair(
            "a text in a check", "CREATE TABLE t (a CHECK (a = 'x y'))", "CREATE TABLE t (a CHECK (a = 'x  y'))"),
        SchemaPair("how it is generated", "CREATE TABLE t (a, b AS (a + 1))", "CREATE TABLE t (a, b AS (a + 2))"),
        SchemaPair(
            "when it is generated", "CREATE TABLE t (a, b AS (a + 1))", "CREATE TABLE t (a, b AS (a + 1) STORED)"),
        SchemaPair(
            "WITHOUT ROWID", "CREATE TABLE t (a PRIMARY KEY NOT NULL)",
            "CREATE TABLE t (a PRIMARY KEY NOT NULL) WITHOUT ROWID"),
        SchemaPair("STRICT", "CREATE TABLE t (a TEXT)", "CREATE TABLE t (a TEXT) STRICT"),
        SchemaPair(
            "a foreign key", "CREATE TABLE p (k PRIMARY KEY); CREATE TABLE t (a)",
            "CREATE TABLE p (k PRIMARY KEY); CREATE TABLE t (a REFERENCES p)"),
        SchemaPair(
            "an action", "CREATE TABLE p (k PRIMARY KEY); CREATE TABLE t (a REFERENCES p)",
            "CREATE TABLE p (k PRIMARY KEY); CREATE TABLE t (a REFERENCES p ON DELETE SET NULL)"),
        SchemaPair(
            "which key is deferred", "CREATE TABLE t (a REFERENCES t DEFERRABLE INITIALLY DEFERRED, b REFERENCES t)",
            "CREATE TABLE t (a REFERENCES t, b REFERENCES t DEFERRABLE INITIALLY DEFERRED)"),
        SchemaPair(
            "unique or not", "CREATE TABLE t (a); CREATE INDEX i ON t (a)",
            "CREATE TABLE t (a); CREATE UNIQUE INDEX i ON t (a)"),
        SchemaPair(
            "direction of an index", "CREATE TABLE t (a); CREATE INDEX i ON t (a)",
            "CREATE TABLE t (a); CREATE INDEX i ON t (a DESC)"),
        SchemaPair(
            "collation of an index", "CREATE TABLE t (a); CREATE INDEX i ON t (a)",
            "CREATE TABLE t (a); CREATE INDEX i ON t (a COLLATE RTRIM)"),
        SchemaPair(
            "which rows an index has", "CREATE TABLE t (a); CREATE INDEX i ON t (a)",
            "CREATE TABLE t (a); CREATE INDEX i ON t (a) WHERE a > 0"),
        SchemaPair(
            "expression of an index", "CREATE TABLE t (a); CREATE INDEX i ON t (a + 1)",
            "CREATE TABLE t (a); CREATE INDEX i ON t (a + 2)"),
        SchemaPair(
            "name of an index", "CREATE TABLE t (a); CREATE INDEX i ON t (a)",
            "CREATE TABLE t (a); CREATE INDEX j ON t (a)"),
        SchemaPair("a view", "CREATE VIEW v AS SELECT 1 AS a", "CREATE VIEW v AS SELECT 2 AS a"),
        SchemaPair(
            "a trigger", "CREATE TABLE t (a); CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT 1; END",
            "CREATE TABLE t (a); CREATE TRIGGER g AFTER UPDATE ON t BEGIN SELECT 1; END"),
        SchemaPair(
            "a virtual table's arguments", "CREATE VIRTUAL TABLE t USING fts5 (a)",
            "CREATE VIRTUAL TABLE t USING fts5 (a, tokenize = porter)"),
        SchemaPair("a view or a table", "CREATE TABLE t (a)", "CREATE VIEW t AS SELECT 1 AS a"),
        SchemaPair("case of a declared name", "CREATE TABLE t (name)", "CREATE TABLE t (Name)"),
    ])
    func `different schemas have different shapes`(_ pair: SchemaPair) throws {
        let (first, second) = (try SchemaShape(madeBy: pair.first), try SchemaShape(madeBy: pair.second))
        #expect(first != second)
        #expect(first.canonicalText != second.canonicalText)
        #expect(first.diff(against: second) != [])
        #expect(second.diff(against: first) != [])
    }

    @Test func `schema differences are described in words`() throws {
        let found = try SchemaShape(
            madeBy: """
                CREATE TABLE food (pk INTEGER PRIMARY KEY, name INTEGER, note TEXT);
                CREATE TABLE version (ver INTEGER, at TEXT) ; CREATE TABLE stray (a);
                CREATE INDEX i ON food (name);
                """)
        let expected = try SchemaShape(
            madeBy: """
                CREATE TABLE food (pk INTEGER PRIMARY KEY, name TEXT NOT NULL, "desc" TEXT, UNIQUE (name));
                CREATE TABLE version (at TEXT, ver INTEGER); CREATE TABLE meal (food REFERENCES food) STRICT;
                CREATE INDEX i ON food ("desc" DESC); CREATE VIEW v AS SELECT 1;
                """.replacing("(food REFERENCES food) STRICT", with: "(food INTEGER REFERENCES food) STRICT"))
        #expect(
            found.diff(against: expected) == [
                "table food: column \"name\" is INTEGER, expected TEXT not null",
                "table food: column \"desc\" is missing",
                "table food: column \"note\" is not expected",
                "table food: the constraint unique (\"name\") is missing",
                "table meal is missing",
                "table version: columns are in the order ver, at, expected at, ver",
                "table stray is not expected",
                "index i is: on \"food\" (\"name\"); expected: on \"food\" (\"desc\" desc)",
                "view v is missing",
            ])
    }

    /// The first line contains the number of the format, because the schema digests in manifests must not change with
    /// new versions of moult.
    @Test func `the canonical text of a schema is stable`() throws {
        let shape = try SchemaShape(
            madeBy: """
                CREATE TABLE food ("pk" INTEGER PRIMARY KEY NOT NULL, "desc" TEXT COLLATE NOCASE DEFAULT 'none',
                    half REAL GENERATED ALWAYS AS (pk / 2.0) STORED, CHECK (length("desc") < 100));
                CREATE TABLE meal (day TEXT, food REFERENCES food ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
                    PRIMARY KEY (day, food)) WITHOUT ROWID;
                CREATE UNIQUE INDEX idx ON food (half DESC, lower("desc") COLLATE RTRIM) WHERE half > 1;
                CREATE VIEW v AS SELECT "desc" FROM food;
                CREATE VIRTUAL TABLE words USING fts5 (body);
                """)
        #expect(
            shape.canonicalText == """
                moult schema 1
                table "food"
                  column "pk" INTEGER not null primary key 1
                  column "desc" TEXT collate nocase default 'none'
                  column "half" REAL stored as ( pk / 2.0 )
                  check ( length ( desc ) < 100 )
                table "meal" without rowid
                  column "day" TEXT not null primary key 1
                  column "food" any type not null primary key 2
                  foreign key ("food") references "food" on update no action on delete cascade deferred
                  primary key ("day", "food")
                index "idx" unique on "food" ("half" desc, lower ( desc ) collate rtrim) where half > 1
                view "v" as select desc from food
                virtual table "words" using fts5 ( body )

                """)
    }

    /// Another program dumps the schema and recreates it.
    @Test func `the shape stays the same after a dump by the SQLite shell`() throws {
        let path = try scratch.database(
            "a.db",
            """
            CREATE TABLE "we ird" ("a ""b" INT DEFAULT (1 + 2), [c]] TEXT UNIQUE ON CONFLICT REPLACE, CHECK ("a ""b" <> 'it''s'));
            CREATE TABLE t (a REFERENCES t, b AS (a || 'x'), PRIMARY KEY (a)) WITHOUT ROWID;
            CREATE VIRTUAL TABLE words USING fts5 (body, tokenize = 'unicode61 remove_diacritics 2');
            CREATE VIEW v (x) AS SELECT a -> '$.x' FROM t; ANALYZE;
            """.replacing("[c]]", with: "[c d]"))
        try Shell.must(["sqlite3", scratch.path("b.db")], input: Shell.must(["sqlite3", path, ".dump"]))
        let shapes = try ["a.db", "b.db"].map {
            try SchemaShape(of: Connection(path: scratch.path($0), access: .readOnly))
        }
        #expect(shapes[0] == shapes[1])
        #expect(shapes[0].tables.map(\.name) == ["t", "we ird"])
    }

    @Test func `the shape of a schema can leave out tables`() throws {
        let connection = try Connection.inMemory()
        try connection.execute("CREATE TABLE t (a)")
        let before = try SchemaShape(of: connection)
        try connection.execute(
            "CREATE TABLE marker (a); CREATE INDEX i ON marker (a); CREATE TRIGGER g AFTER INSERT ON marker BEGIN SELECT 1; END"
        )
        #expect(try SchemaShape(of: connection, ignoring: ["marker"]) == before)
    }

    @Test func `the identity of a database is read under the guard`() throws {
        let sql = "CREATE TABLE t (a); CREATE VIRTUAL TABLE w USING fts5 (b)"
        let path = try scratch.database(
            "b.db", "PRAGMA page_size = 1024; PRAGMA application_id = 5; PRAGMA user_version = 6; \(sql)")
        let identity = try Identity(of: .openGuarded(path: path, access: .immutable, deadline: 30))
        #expect(identity.applicationID == 5)
        #expect(identity.userVersion == 6)
        #expect(identity.encoding == "UTF-8")
        #expect(identity.pageSize == 1024)
        #expect(identity.pageCount * 1024 == (try scratch.size("b.db")))
        #expect(identity.shape == (try SchemaShape(madeBy: sql)))
    }
}
