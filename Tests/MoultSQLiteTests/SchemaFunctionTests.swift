import CSQLite
import MoultBasics
import TestSupport
import Testing

@testable import MoultRows
@testable import MoultSQLite

/// Each function of SQLite, in each place of a schema: either SQLite itself does not allow it there, or moult checks, replaces,
/// migrates and salvages the database.
@Suite struct SchemaFunctionTests {
    /// A place of a schema that can call a function.
    enum Place: String, CaseIterable {
        case check, fallback, virtual, stored, index, partial, view, trigger

        /// The statements that put a call into this place. `x` is a column with the text 1, and a default has no columns.
        func schema(_ function: Function) -> [String] {
            let (table, call) = ("CREATE TABLE \(rawValue)_t(x TEXT", function.call("x", isExpression: isExpression))
            return switch self {
            case .check: ["\(table) CHECK(ifnull(\(call), 1) IS NOT NULL))"]
            case .fallback: ["\(table), y DEFAULT(\(function.call("'1'", isExpression: true))))"]
            case .virtual: ["\(table), y AS (\(call)) VIRTUAL)"]
            case .stored: ["\(table), y AS (\(call)) STORED)"]
            case .index: ["\(table))", "CREATE INDEX i ON index_t(\(call))"]
            case .partial: ["\(table))", "CREATE INDEX p ON partial_t(x) WHERE \(call) IS NOT NULL"]
            case .view: ["CREATE VIEW v AS SELECT \(call)\(function.over) AS y FROM \(function.source)"]
            case .trigger:
                [
                    "\(table))",
                    "CREATE TRIGGER r AFTER INSERT ON trigger_t BEGIN INSERT INTO log SELECT \(call)\(function.over) FROM "
                        + "\(function.source); END",
                ]
            }
        }

        var isExpression: Bool { self != .view && self != .trigger }
        /// Whether SQLite stores the result, and so requires that it never changes.
        var isStored: Bool { [.virtual, .stored, .index, .partial].contains(self) }
    }

    struct Function: CustomTestStringConvertible {
        let name: String
        let type: String
        let count: Int
        let flags: Int64

        var testDescription: String { "\(name)/\(count)" }
        private var isModuleFunction: Bool { Self.ofFTS[name] != nil }
        /// The rows on which a view or trigger calls the function.
        var source: String { Self.ofFTS[name].map { "\($0.table) WHERE \($0.table) MATCH 'one'" } ?? "src" }
        /// The arguments; nil for valid ones.
        var fixed: String?
        /// Returns a call with valid arguments.
        func call(_ x: String, isExpression: Bool) -> String {
            let ofRow = isExpression ? nil : Self.ofFTS[name]?.arguments
            let arguments = fixed ?? ofRow ?? Self.arguments[name]?[count] ?? Self.usual(count)
            return "\(quoteIdentifier(name))(\(fixed == nil ? arguments.replacing("x", with: x) : arguments))"
        }
        /// Some functions must have a window, and all others of their type may have one.
        var over: String { type == "w" ? " OVER (ORDER BY x)" : "" }

        /// Why SQLite does not allow the function in this place: a part of its message.
        func limit(in place: Place) -> String? {
            if type != "s", place.isExpression { return place == .fallback ? "unknown function" : "misuse of" }
            if flags & Int64(SQLITE_DETERMINISTIC) == 0, place.isStored {
                return "non-deterministic functions prohibited in"
            }
            // These need a row of a full-text table.
            if isModuleFunction, place.isExpression { return "in the requested context" }
            return nil
        }

        private static func usual(_ count: Int) -> String {
            [String](repeating: "x", count: count < 0 ? 2 : count).joined(separator: ", ")
        }

        private static let arguments: [String: [Int: String]] = [
            "json_extract": [-1: "x, '$'"], "json_insert": [-1: "x, '$.a', 1"], "json_object": [-1: "'a', x"],
            "json_remove": [-1: "x, '$.a'"], "json_replace": [-1: "x, '$.a', 1"], "json_set": [-1: "x, '$.a', 1"],
            "json_type": [2: "x, '$'"], "json_array_length": [2: "x, '$'"], "likelihood": [2: "x, 0.5"],
        ]
        private static let ofFTS: [String: (table: String, arguments: String)] = [
            "bm25": ("five", "five"), "highlight": ("five", "five, 0, '[', ']'"), "snippet": ("four", "four"),
            "offsets": ("four", "four"), "matchinfo": ("four", "four"), "match": ("four", "'one', x"),
        ]
    }

    /// Functions that are parts of a module, and read or change its tables or take a pointer. moult treats them like functions of
    /// an app, which only the app can call.
    static let ofModules: Set<String> = ["rtreenode", "rtreedepth", "rtreecheck", "fts5", "fts5_source_id", "optimize"]

    /// Functions that load code, or take an address.
    static let dangerous: Set<String> = ["load_extension", "fts3_tokenizer"]

    static let functions: [Function] = {
        // An error shows as a missing function, which the first test finds.
        let rows = (try? Connection.inMemory().query("PRAGMA function_list")) ?? []
        var seen: Set<String> = []
        return rows.compactMap { row in
            guard case .text(let name) = row[0], case .text(let type) = row[2], case .integer(let count) = row[4],
                case .integer(let flags) = row[5], seen.insert("\(name)/\(count)/\(type)").inserted
            else { return nil }
            return Function(name: name, type: type, count: Int(count), flags: flags)
        }
    }()

    private let scratch: Scratch
    init() throws { scratch = try Scratch() }

    @Test func `all functions are tested`() {
        #expect(Self.functions.count >= 140)
        for name in ["json_valid", "->>", "instr", "load_extension", "random", "bm25"] {
            #expect(Self.functions.contains { $0.name == name }, "\(name)")
        }
    }

    @Test(
        .tags(.sampled),
        arguments: functions.filter {
            !ofModules.contains($0.name) && !dangerous.contains($0.name) && $0.name != "match"
        }.sampled(40))
    func `a function can be used wherever SQLite allows it`(_ function: Function) throws {
        let places = try make(function)
        guard !places.isEmpty else { return }
        let tables = places.filter { $0 != .view }.map { "\($0.rawValue)_t" }
        let path = scratch.path("app.db")

        // The check of a release, and of a database of an app.
        let guarded = try Connection.openGuarded(path: path, access: .readWrite, deadline: 60)
        #expect(try guarded.soundness(full: true) == Soundness())
        if places.contains(.view) { #expect(try guarded.query("SELECT y FROM v").count == 1) }
        for table in tables { #expect(try guarded.query("SELECT * FROM \(table)").count == 1) }
        try guarded.close()

        // A replacement that keeps the rows.
        let old = try Connection(path: path, access: .readWrite)
        _ = try make(function, in: "new.db", withRows: false)
        let new = try Connection(path: scratch.path("new.db"), access: .readWrite)
        let outcomes = try new.transaction(.immediate) {
            try RowTransfer(rules: tables.map { RowRule(table: $0) }, rejects: RejectTable(label: "2")).run(
                from: old, to: new)
        }
        #expect(outcomes == tables.map { TableOutcome(table: $0, selected: 1, carried: 1) })
        try new.close()

        // A migration of another table.
        let script = "ALTER TABLE other ADD COLUMN y; ALTER TABLE other RENAME TO others; PRAGMA user_version = 1"
        try Migrations([.init(name: "1.sql", number: 1, sql: script)]).begin(on: old)
        try old.execute("ROLLBACK")
        try old.close()

        let report = try Salvage.run(
            path, template: nil, to: scratch.path("found.db"), scratch: scratch.directory("scratch"))
        #expect(report.isWhole, "\(report)")
    }

    /// Creates a database with the function in each place that SQLite allows, and returns these places.
    private func make(_ function: Function, in name: String = "app.db", withRows: Bool = true) throws -> [Place] {
        let connection = try Connection(path: scratch.path(name), access: .readWriteCreate)
        try connection.execute(
            """
            PRAGMA synchronous = OFF;
            CREATE TABLE src(x TEXT); INSERT INTO src VALUES('1'); CREATE TABLE log(y); CREATE TABLE other(x);
            CREATE VIRTUAL TABLE five USING fts5(x); INSERT INTO five VALUES('one');
            CREATE VIRTUAL TABLE four USING fts4(x); INSERT INTO four VALUES('one');
            """)
        var places: [Place] = []
        for place in Place.allCases {
            let limit = function.limit(in: place)
            let created = Result {
                try connection.transaction(.immediate) {
                    for sql in place.schema(function) { try connection.run(sql) }
                    // Some limits apply only when the function is called.
                    if place == .view {
                        _ = try connection.query("SELECT y FROM v")
                    } else if withRows || limit != nil {
                        try connection.run("INSERT INTO \(place.rawValue)_t(x) VALUES('1')")
                    }
                }
            }
            switch created {
            case .success:
                #expect(limit == nil, "SQLite allows \(function.name) in \(place)")
                places.append(place)
            case .failure(let error):
                let message = error.sqlite?.message ?? "\(error)"
                #expect(limit.map { message.contains($0) } == true, "\(function.name) in \(place): \(message)")
            }
        }
        try connection.close()
        return places
    }

    @Test(arguments: ofModules.sorted())
    func `a function of a module counts as one that only the app has`(_ name: String) throws {
        let path = try scratch.database(
            "app.db",
            "CREATE TABLE t(x); CREATE VIEW v AS SELECT \(name)(x, x) FROM t; CREATE VIEW w AS SELECT \(name)(x)")
        let connection = try Connection.openGuarded(path: path, access: .readWrite, deadline: 60)
        for sql in ["SELECT * FROM v", "SELECT \(name)()", "SELECT \(name)(1)"] {
            let error = #expect(throws: MoultError.self) { _ = try connection.query(sql) }
            #expect(error.flatMap { AppNeed($0) } == AppNeed(message: "no such function: \(name)"), "\(error as Any)")
        }
    }

    /// An app can have extensions that register functions on every connection.
    @Test func `the schema of an untrusted database cannot call functions of an extension`() throws {
        let path = try scratch.database("app.db", "CREATE TABLE t(x); INSERT INTO t VALUES('a')")
        let app = try Connection(path: path, access: .readWrite, isForApp: true)
        try register("wipe", SQLITE_UTF8, on: app)
        try app.execute(
            "CREATE TABLE c(x CHECK(wipe(x) > 0)); INSERT INTO c VALUES(1); CREATE VIEW v AS SELECT wipe(x) FROM t")
        try app.close()
        let connection = try Connection(path: path, access: .readWrite)
        try register("wipe", SQLITE_UTF8, on: connection)
        try register("harmless", SQLITE_UTF8 | SQLITE_INNOCUOUS, on: connection)
        try connection.raiseGuard(deadline: 60)
        #expect(try connection.int("SELECT harmless(x) FROM t") == 7)
        #expect(try connection.soundness(full: true).notChecked == ["table c: it needs the app's function \"wipe\""])
        #expect(throws: MoultError.self) { _ = try connection.query("SELECT * FROM v") }
    }

    private func register(_ name: String, _ flags: Int32, on connection: Connection) throws {
        let code = try sqlite3_create_function_v2(
            connection.handle, name, 1, flags, nil, { context, _, _ in sqlite3_result_int(context, 7) }, nil, nil, nil)
        #expect(code == SQLITE_OK)
    }

    /// SQLite allows these in no place of a schema but a CHECK, where only the switches of the connection stop them.
    @Test(arguments: [
        ("load_extension", "'x'", "not authorized"), ("load_extension", "'x', 'y'", "not authorized"),
        ("fts3_tokenizer", "'simple', x'0010ADDE00000000'", "fts3tokenize disabled"),
    ])
    func `a schema cannot load code or take an address`(_ name: String, _ arguments: String, _ why: String) throws {
        let function = Function(name: name, type: "s", count: 1, flags: 0, fixed: arguments)
        for place in Place.allCases {
            let path = scratch.path("\(place).db")
            let connection = try Connection(path: path, access: .readWriteCreate)
            try connection.execute("CREATE TABLE src(x); INSERT INTO src VALUES(1); CREATE TABLE log(y)")
            let error = #expect(throws: MoultError.self) {
                for sql in place.schema(function) { try connection.run(sql) }
                if place == .view { _ = try connection.query("SELECT y FROM v") }
                try connection.run("INSERT INTO \(place.rawValue)_t(x) VALUES(1)")
            }
            let expected =
                place == .check ? why : place.isStored ? "non-deterministic functions prohibited in" : "unsafe use of"
            #expect(error?.sqlite?.message.contains(expected) == true, "\(place): \(error as Any)")
            try connection.close()
        }
        // An app can have turned the check off, and the row is there.
        let app = try Connection(path: scratch.path("check.db"), access: .readWrite, isForApp: true)
        try app.execute("PRAGMA ignore_check_constraints = 1; INSERT INTO check_t(x) VALUES(1)")
        try app.close()
        let guarded = try Connection.openGuarded(path: scratch.path("check.db"), access: .readWrite, deadline: 60)
        let checked = Result { try guarded.soundness(full: true) }
        switch checked {
        case .success(let soundness): #expect(soundness.notChecked.first?.contains(name) == true, "\(soundness)")
        case .failure(let error): #expect(error.sqlite?.message == why, "\(error)")
        }
    }

    @Test func `views and triggers can use full-text tables and R-trees, but not raw pages`() throws {
        let path = try scratch.database(
            "app.db",
            """
            CREATE TABLE t(id INTEGER PRIMARY KEY, x);
            CREATE VIRTUAL TABLE words USING fts5(x); CREATE VIRTUAL TABLE box USING rtree(id, a, b);
            CREATE TRIGGER r AFTER INSERT ON t BEGIN
                INSERT INTO words(rowid, x) VALUES(new.id, new.x); INSERT INTO box VALUES(new.id, 1, 2); END;
            INSERT INTO t VALUES(1, 'one');
            CREATE VIEW v AS SELECT t.id FROM t JOIN words ON words.rowid = t.id JOIN box ON box.id = t.id;
            CREATE VIEW pages AS SELECT name FROM dbstat; CREATE VIEW columns AS SELECT name FROM pragma_table_info('t');
            """)
        let connection = try Connection.openGuarded(path: path, access: .readWrite, deadline: 60)
        #expect(try connection.soundness(full: true) == Soundness())
        #expect(try connection.int("SELECT id FROM v") == 1)
        #expect(try connection.query("SELECT name FROM columns") == [[.text("id")], [.text("x")]])
        let error = #expect(throws: MoultError.self) { _ = try connection.query("SELECT * FROM pages") }
        #expect(error?.sqlite?.message.contains("unsafe use of virtual table") == true)
    }
}
