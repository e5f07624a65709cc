/// Two releases with the same schema, and their differences.
enum EvolutionCases {
    typealias Case = EvolutionTests.Case

    static let all: [Case] = [
        Case(
            "integer primary key", "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b);CREATE INDEX i ON t(a);",
            "INSERT INTO t VALUES(1,'x',1),(2,'y',2),(3,'z',3);",
            "INSERT INTO t VALUES(0,'w',0),(1,'x',1),(3,'zz',NULL);",
            EvolutionTests.counts(added: 1, changed: 1, removed: 1, unchanged: 1)),
        Case(
            "integer primary key in descending order, which is not the rowid",
            "CREATE TABLE t(id INTEGER PRIMARY KEY DESC, a);",
            "INSERT INTO t VALUES(10,'a'),(20,'b');", "INSERT INTO t VALUES(10,'a'),(30,'b');",
            EvolutionTests.counts(added: 1, removed: 1, unchanged: 1)),
        Case(
            "the same, where values exchange their rows", "CREATE TABLE t(id INTEGER PRIMARY KEY DESC, a);",
            "INSERT INTO t VALUES(10,'a'),(20,'b'),(1,'c');", "INSERT INTO t VALUES(20,'a'),(10,'b'),(2,'c');",
            EvolutionTests.counts(added: 1, changed: 2, removed: 1)),
        Case(
            "storage class alone", "CREATE TABLE t(id INTEGER PRIMARY KEY, a);",
            "INSERT INTO t VALUES(1,1),(2,'a'),(3,x'61'),(4,NULL),(5,1.0);",
            "INSERT INTO t VALUES(1,1.0),(2,x'61'),(3,'a'),(4,''),(5,1.0);",
            EvolutionTests.counts(changed: 4, unchanged: 1)),
        Case(
            "case alone, in a column that ignores it", "CREATE TABLE t(id INTEGER PRIMARY KEY, a COLLATE NOCASE);",
            "INSERT INTO t VALUES(1,'a'),(2,'b');", "INSERT INTO t VALUES(1,'A'),(2,'b');",
            EvolutionTests.counts(changed: 1, unchanged: 1)),
        Case(
            "without rowid", "CREATE TABLE t(a, b, c, PRIMARY KEY(b, a)) WITHOUT ROWID;",
            "INSERT INTO t VALUES(1,1,'x'),(1,2,'y'),(2,1,'z');", "INSERT INTO t VALUES(1,1,'x'),(1,2,'Y'),(2,2,'z');",
            EvolutionTests.counts(added: 1, changed: 1, removed: 1, unchanged: 1)),
        Case(
            "without rowid, a key that changes its case",
            "CREATE TABLE t(a COLLATE NOCASE PRIMARY KEY, b) WITHOUT ROWID;",
            "INSERT INTO t VALUES('a',1),('b',2);", "INSERT INTO t VALUES('A',1),('b',3);",
            EvolutionTests.counts(changed: 2)),
        Case(
            "a key's collation of its own", "CREATE TABLE t(a TEXT, b, PRIMARY KEY(a COLLATE NOCASE));",
            "INSERT INTO t VALUES('a',1),('b',2);", "INSERT INTO t VALUES('A',1),('c',2);",
            EvolutionTests.counts(added: 1, changed: 1, removed: 1)),
        Case(
            "text key with rowids that shift", "CREATE TABLE t(a TEXT PRIMARY KEY, b);",
            "INSERT INTO t VALUES('a',1),('c',3),('d',4);", "INSERT INTO t VALUES('a',1),('b',2),('c',3),('d',5);",
            EvolutionTests.counts(added: 1, changed: 1, unchanged: 2)),
        Case(
            "key with NULLs", "CREATE TABLE t(a TEXT PRIMARY KEY, b);",
            "INSERT INTO t VALUES(NULL,1),(NULL,2),('x',3);",
            "INSERT INTO t VALUES(NULL,1),(NULL,5),('x',3);", EvolutionTests.counts(changed: 1, unchanged: 2)),
        Case(
            "no key", "CREATE TABLE t(a, b);", "INSERT INTO t VALUES(1,1),(2,2);",
            "INSERT INTO t VALUES(1,1),(2,3),(2,3);",
            EvolutionTests.counts(added: 1, changed: 1, unchanged: 1)),
        Case(
            "a column called rowid", "CREATE TABLE t(rowid TEXT, b);", "INSERT INTO t VALUES('p',1);",
            "INSERT INTO t VALUES('q',1);", EvolutionTests.counts(changed: 1)),
        Case(
            "unique values exchanged", "CREATE TABLE t(id INTEGER PRIMARY KEY, u UNIQUE ON CONFLICT REPLACE, v);",
            "INSERT INTO t VALUES(1,'a',1),(2,'b',2),(3,'c',3);", "INSERT INTO t VALUES(1,'b',1),(2,'a',2),(3,'c',3);",
            EvolutionTests.counts(changed: 2, unchanged: 1)),
        Case(
            "a unique value that moves to a new row", "CREATE TABLE t(id INTEGER PRIMARY KEY, u UNIQUE);",
            "INSERT INTO t VALUES(1,'a'),(2,'b');", "INSERT INTO t VALUES(2,'b'),(3,'a');",
            EvolutionTests.counts(added: 1, removed: 1, unchanged: 1)),
        Case(
            "autoincrement", "CREATE TABLE t(id INTEGER PRIMARY KEY AUTOINCREMENT, a);", "INSERT INTO t VALUES(5,'a');",
            "INSERT INTO t VALUES(5,'a'),(9,'b');DELETE FROM t WHERE id=9;",
            // The row of sqlite_sequence.
            EvolutionTests.counts(changed: 1, unchanged: 1)),
        Case(
            "generated columns and checks",
            "CREATE TABLE t(id INTEGER PRIMARY KEY, a INT CHECK(a > 0), b AS (a * 2), c AS (a + 1) STORED);"
                + "CREATE INDEX i ON t(c);",
            "INSERT INTO t(a) VALUES(1),(2);", "INSERT INTO t(a) VALUES(1),(3);",
            EvolutionTests.counts(changed: 1, unchanged: 1)),
        Case(
            "triggers and foreign keys stay quiet",
            "CREATE TABLE log(x);CREATE TABLE p(id INTEGER PRIMARY KEY);CREATE TABLE c(p REFERENCES p ON DELETE CASCADE);"
                + "CREATE TRIGGER r AFTER DELETE ON p BEGIN INSERT INTO log VALUES('gone'); END;",
            "INSERT INTO p VALUES(1),(2);INSERT INTO c VALUES(1);", "INSERT INTO p VALUES(2);INSERT INTO c VALUES(1);",
            EvolutionTests.counts(removed: 1, unchanged: 2)),
        Case(
            "full text", "CREATE VIRTUAL TABLE f USING fts4(t);CREATE TABLE k(a TEXT PRIMARY KEY);",
            "INSERT INTO f VALUES('one two'),('three');INSERT INTO k VALUES('a'),('b');",
            "INSERT INTO f VALUES('one two'),('four');INSERT INTO k VALUES('b'),('c');",
            // Changed: one row of f_content, the row of f_segdir, the row of f_stat (which counts bytes), and both rows
            // of k, by rowid because of f. Unchanged: the other row of f_content and two rows of f_docsize.
            EvolutionTests.counts(changed: 5, unchanged: 3)),
        Case(
            "analyze", "CREATE TABLE t(a);CREATE INDEX i ON t(a);INSERT INTO t VALUES(1);", "ANALYZE;",
            "INSERT INTO t VALUES(2);ANALYZE;", EvolutionTests.counts(added: 1, changed: 1, unchanged: 1)),
        Case(
            "UTF-16", "PRAGMA encoding='UTF-16be';CREATE TABLE t(a TEXT PRIMARY KEY, b) WITHOUT ROWID;",
            "INSERT INTO t VALUES('é','x');", "INSERT INTO t VALUES('é','ÿ'),('€',1);",
            EvolutionTests.counts(added: 1, changed: 1)),
        Case(
            "version", "CREATE TABLE t(a);", "PRAGMA user_version=1;", "PRAGMA user_version=2;PRAGMA application_id=3;",
            EvolutionTests.counts()),
    ]
}
