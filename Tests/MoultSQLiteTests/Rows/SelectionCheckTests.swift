import MoultBasics
import MoultRows
import MoultSQLite
import TestSupport
import Testing

@Suite struct SelectionCheckTests {
    let connection: Connection
    var check: SelectionCheck { SelectionCheck(connection) }

    init() throws {
        connection = try Connection.inMemory()
        try connection.execute(
            """
            CREATE TABLE item(name TEXT PRIMARY KEY, cents INT, edited INT, made TEXT, g AS (cents + 1));
            CREATE TABLE tag(item TEXT, tag TEXT);
            CREATE TABLE moult_rejected(row TEXT);
            CREATE VIEW cheap AS SELECT * FROM item WHERE cents < 5;
            CREATE VIRTUAL TABLE search USING fts5(name);
            """)
    }

    @Test func `the error for a misspelled table contains a suggestion`() throws {
        let fault = try #require(try check.fault(inTable: "itm"))
        #expect(fault.subject == .table)
        #expect(fault.description == #"the database has no table "itm". Did you mean "item"?"#)
        #expect(try check.fault(inTable: "ITEM") == nil)
    }

    @Test(arguments: ["cheap", "search", "search_data", "moult_rejected", "sqlite_schema", "nothing at all"])
    func `only ordinary tables can be selected`(_ table: String) throws {
        #expect(try check.fault(inTable: table)?.subject == .table)
    }

    @Test func `the new names of renamed columns must exist`() throws {
        #expect(try check.fault(inNewNames: ["a": "CENTS"], of: "item") == nil)
        let fault = try #require(try check.fault(inNewNames: ["cents": "centz"], of: "item"))
        #expect(fault.subject == .column("cents"))
        #expect(fault.suggestion == #"Did you mean "cents"?"#)
        #expect(try check.fault(inNewNames: ["a": "g"], of: "item") != nil)
        // A column may have been renamed more than once.
        #expect(try check.fault(inNewNames: ["a": "cents", "b": "Cents"], of: "item") == nil)
    }

    @Test(arguments: [
        "edited = 1", "(edited = 1) OR cents > 3 -- why", "name IN (SELECT item FROM tag)", "name LIKE 'a%'",
        "EXISTS (SELECT 1 FROM cheap WHERE cheap.name = item.name)", "date(made) > '2026-01-01'",
        "strftime('%Y', made) = '2026'", "json_extract(name, '$.x') = 1", "\"edited\" = 1", "rowid > 5", "g > 2",
        "name = ');'", "(WITH x AS (SELECT 1 AS a) SELECT a FROM x)", "/* one */ edited",
        "(SELECT count(*) FROM json_each(made)) > 2",
    ])
    func `a condition that reads only the database is accepted`(_ condition: String) throws {
        #expect(try check.fault(inCondition: condition, of: "item")?.description == nil)
    }

    @Test(arguments: [
        "\"edtable\" = 1", "edtable = 1", "1) OR (1", "1; DROP TABLE item", "", "(1", "edited = ?1", "edited = :a",
        "random() > 0", "changes()", "last_insert_rowid()", "made < current_timestamp", "made < CURRENT_DATE",
        "date('now') > made", "date() > made", "strftime('%s') > 1", "\"date\"(' NOW ') > made",
        "datetime(made, 'localtime')",
        "app(name)", "name MATCH 'x'", "edited = 1 UNION SELECT 1", "1 --\n) OR (1", "/* 1", "edited ORDER BY 1",
        "(SELECT count(*) FROM sqlite_schema)", "(SELECT count(*) FROM pragma_table_list)", "load_extension('x')",
        "name IN (SELECT * FROM temp.x)", "name COLLATE app = 'x'", "sqlite_version()", "count(*) > 1", "1, 2",
    ])
    func `a condition that does not always select the same rows is refused`(_ condition: String) throws {
        let fault = try #require(try check.fault(inCondition: condition, of: "item"))
        #expect(fault.subject == .condition)
    }

    @Test func `the error for a misspelled column in a condition contains a suggestion`() throws {
        for condition in ["\"editd\" = 1", "item.editd = 1"] {
            let fault = try #require(try check.fault(inCondition: condition, of: "item"))
            #expect(fault.suggestion == #"Did you mean "edited"?"#)
        }
        let random = try #require(try check.fault(inCondition: "random()", of: "item"))
        #expect(random.why.contains("the function random"))
    }

    @Test func `a check of conditions leaves a guarded connection guarded`() throws {
        let scratch = try Scratch()
        let path = try scratch.database("a.db", "CREATE TABLE t(a)")
        let guarded = try Connection.openGuarded(path: path, access: .readWrite, deadline: 10)
        #expect(try SelectionCheck(guarded).faults(in: RowRule(table: "t", conditions: ["a = 1"])) == [])
        #expect(throws: MoultError.self) { try guarded.execute("ATTACH 'x' AS y") }
        #expect(try guarded.int("SELECT count(*) FROM t") == 0)
    }
}
