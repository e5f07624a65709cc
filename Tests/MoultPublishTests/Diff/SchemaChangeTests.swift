import MoultPublish
import TestSupport
import Testing

/// Changes of the schema, described in words.
@Suite struct SchemaChangeTests {
    struct Case: CustomTestStringConvertible, Sendable {
        let old: String
        let new: String
        let words: [String]
        var testDescription: String { "\(old) -> \(new)" }
    }

    static let cases = [
        Case(
            old: "CREATE TABLE a (x)",
            new: "CREATE TABLE a (x); CREATE TABLE b (id INTEGER PRIMARY KEY, n TEXT NOT NULL)",
            words: ["table b added: id INTEGER primary key 1, n TEXT not null"]),
        Case(
            old: "CREATE TABLE a (x); CREATE TABLE b (y REAL)", new: "CREATE TABLE a (x)",
            words: ["table b removed: y REAL"]),
        Case(
            old: "CREATE TABLE a (x, y TEXT, z)", new: "CREATE TABLE a (x INT, y TEXT, w DEFAULT 1)",
            words: [
                "column x of table a changed: any type -> INT", "column w of table a added: any type default 1",
                "column z of table a removed: any type",
            ]),
        Case(
            old: "CREATE TABLE a (x, y)", new: "CREATE TABLE a (y, x)",
            words: ["order of columns of table a changed: x, y -> y, x"]),
        Case(
            old: "CREATE TABLE a (x INT)", new: "CREATE TABLE a (x INT) STRICT",
            words: ["table a changed: an ordinary table -> strict"]),
        Case(
            old: "CREATE TABLE a (x CHECK (x > 1))", new: "CREATE TABLE a (x CHECK (x > 2) UNIQUE)",
            words: [
                "constraint of table a added: check ( x > 2 )", "constraint of table a added: unique (\"x\")",
                "constraint of table a removed: check ( x > 1 )",
            ]),
        Case(
            old: "CREATE TABLE a (x); CREATE INDEX i ON a (x)",
            new: "CREATE TABLE a (x); CREATE UNIQUE INDEX i ON a (x DESC); CREATE INDEX j ON a (x) WHERE x > 1",
            words: [
                "index i changed: on \"a\" (\"x\") -> unique on \"a\" (\"x\" desc)",
                "index j added: on \"a\" (\"x\") where x > 1",
            ]),
        Case(
            old:
                "CREATE TABLE a (x); CREATE VIEW v AS SELECT 1; CREATE TRIGGER r AFTER INSERT ON a BEGIN SELECT 1; END",
            new: "CREATE TABLE a (x); CREATE VIEW v AS SELECT 2",
            words: [
                "view v changed: as select 1 -> as select 2",
                "trigger r removed: after insert on a begin select 1 ; end",
            ]),
        Case(
            old: "CREATE TABLE a (x, y)",
            new: "create table \"a\"(X_ INT); drop table a; create table [a] (x ,y /* c */)",
            words: []),
    ]

    @Test(arguments: cases) func `schema changes are described in words`(_ sample: Case) throws {
        let scratch = try Scratch()
        let old = try scratch.database("old.db", sample.old)
        let new = try scratch.database("new.db", sample.new)
        let diff = try DatabaseComparison("x", old: old, new: new).diff()
        #expect(diff.schema.map(\.words) == sample.words)
        #expect(diff.differs == !sample.words.isEmpty)
    }

    @Test func `changes of user_version and application_id are reported`() throws {
        let scratch = try Scratch()
        let (old, new) = try scratch.pair(
            "CREATE TABLE a (x)", new: "PRAGMA user_version = 3; PRAGMA application_id = -5")
        #expect(
            try DatabaseComparison("x", old: old, new: new).diff().properties == [
                .init(name: "user_version", old: "0", new: "3"), .init(name: "application_id", old: "0", new: "-5"),
            ])
    }
}
