package import MoultBasics
import MoultFiles
package import MoultSQLite

/// A small database with the rows that an update leaves behind. Its tables have the names and columns of the old ones, but
/// neither types nor keys. So each value stays as it is, and rows of several updates fit into one table.
package final class KeptRows {
    /// The table that names the origin of each row, once rows of several sets are in one database.
    package static let origins = "moult_kept"
    private static let createOrigins = """
        CREATE TABLE \(origins)("table" TEXT COLLATE NOCASE, "row" INTEGER, "set" TEXT, release TEXT, reason TEXT, time TEXT)
        """

    /// The set in quarantine in which rows were kept, with the facts from its record.
    package struct Origin {
        fileprivate let values: [Value]

        package init(set: String, release: String, reason: String, time: String) {
            values = [set, release, reason, time].map { .text($0) }
        }
    }

    /// Returns a statement that inserts rows into a table; the first parameter is the rowid, which a row keeps if it is free.
    private static func insertion(into table: String, _ columns: [String], _ connection: Connection) throws
        -> RowStatement
    {
        let (name, alias) = (quoteIdentifier(table), freeRowIDName(among: columns) ?? "NULL")
        let statement = try connection.statement(
            """
            INSERT INTO \(name)(\(([alias] + columns.map(quoteIdentifier)).joined(separator: ", ")))
            VALUES((SELECT ?1 WHERE NOT EXISTS (SELECT 1 FROM \(name) WHERE \(alias) = ?1)),
                \(columns.indices.map { "?\($0 + 2)" }.joined(separator: ", ")))
            """)
        return RowStatement(statement, Array(0...Int32(columns.count)))
    }

    private let connection: Connection
    private var inserts: [SQLName: RowStatement] = [:]

    /// Creates the database in place of a file that an earlier attempt left. `old` is the database from which rows will be added.
    package init(at path: String, like old: Connection) throws {
        for suffix in [""] + SidecarSuffixes.all { try Files.remove(path + suffix) }
        connection = try Connection(path: path, access: .readWriteCreate)
        try connection.execute("PRAGMA page_size = 512; PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY")
        try connection.run("PRAGMA encoding = '\(old.encoding)'")
        try connection.execute("BEGIN")
    }

    /// Returns whether rows of a table can be kept: its columns leave a name for the rowid.
    static func canKeep(_ layout: TableLayout) -> Bool {
        !layout.hasReplacedName && layout.columns.count < 2000
            && freeRowIDName(among: layout.columns.map(\.name)) != nil
            && SQLName(layout.name) != SQLName(origins)
    }

    /// Adds a row of a comparison.
    func add(_ row: borrowing Statement, of layout: TableLayout) throws {
        let name = SQLName(layout.name)
        if inserts[name] == nil {
            let columns = layout.columns.map(\.name)
            try connection.run(Self.tableSQL(layout.name, columns))
            inserts[name] = try Self.insertion(into: layout.name, columns, connection)
        }
        try inserts[name]?.run(like: row)
    }

    package func close() throws {
        inserts = [:]
        try connection.execute("COMMIT")
        try connection.close()
    }

    private static func tableSQL(_ table: String, _ columns: [String]) -> String {
        "CREATE TABLE \(quoteIdentifier(table))(\(columns.map(quoteIdentifier).joined(separator: ", ")))"
    }

    /// Adds the rows that a release shipped in a table, of which the kept rows are the remainder.
    package static func add(_ table: String, shippedIn release: String, to path: String) throws {
        let from = try Connection(path: release, access: .immutable)
        let into = try Connection(path: path, access: .readWrite)
        func columns(_ connection: Connection) throws -> [SQLName]? {
            try TableLayout.of(SQLName(table), in: connection)?.columns.map { SQLName($0.name) }
        }
        // The content may be from an earlier release, which had other columns.
        if let layout = try TableLayout.of(SQLName(table), in: from), try columns(from) == columns(into) {
            try into.transaction(.immediate) { try copy((table, layout.columns.map(\.name)), from, into) }
        }
        try from.close()
        try into.close()
    }

    private static func copy(_ table: Table, _ from: Connection, _ into: Connection) throws {
        let insert = try insertion(into: table.name, table.columns, into)
        let layout = try Schema(of: from).listed(SQLName(table.name))
        let columns = ([layout.rowIDName ?? "NULL"] + layout.columnsSQL).joined(separator: ", ")
        try from.withStatement("SELECT \(columns) FROM \(layout.rows.sql)") { row in
            while try row.step() { try insert.run(like: row) }
        }
    }

    // MARK: rows of several sets

    /// Adds all rows of the database at `source` to the one at `target`, unless its set was added before. Returns the number of all
    /// rows there, by table; nil if they cannot be combined, because a table has other columns by now.
    package static func merge(
        _ source: String, of origin: Origin, into target: String, of first: Origin
    ) throws -> [SQLName: Int]? {
        let from = try Connection(path: source, access: .immutable)
        let into = try Connection(path: target, access: .readWrite)
        // The caller syncs the file, and has another copy of it.
        try into.execute("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY")
        let counts = try merge(from, origin, into, first)
        try from.close()
        try into.close()
        return counts
    }

    private static func merge(
        _ from: Connection, _ origin: Origin, _ into: Connection, _ first: Origin
    ) throws -> [SQLName: Int]? {
        guard try from.encoding == into.encoding, let added = try tables(of: from), let present = try tables(of: into),
            !added.hasOrigins,
            added.all.allSatisfy({ name, table in
                present.all[name].map { $0.columns.map { SQLName($0) } == table.columns.map { SQLName($0) } } ?? true
            })
        else { return nil }
        return try into.transaction(.immediate) {
            if !present.hasOrigins {
                try into.execute(createOrigins)
                for table in present.all.values { try name(table, first, in: into) }
            }
            let isAdded = try into.int("SELECT count(*) FROM \(origins) WHERE \"set\" = ?1", [origin.values[0]]) > 0
            for (key, table) in added.all.sorted(by: { $0.key < $1.key }) where !isAdded {
                if present.all[key] == nil { try into.run(tableSQL(table.name, table.columns)) }
                try copy(table, from, into)
                try name(table, origin, in: into)
            }
            let counts = try into.query("SELECT \"table\", count(*) FROM \(origins) GROUP BY 1")
            return Dictionary(counts.map { (SQLName($0[0].textOrEmpty), Int($0[1].integerOrZero)) }) { $0 + $1 }
        }
    }

    private typealias Table = (name: String, columns: [String])

    /// Returns the tables; nil if the file has anything that this type does not write: any process may have changed a file in
    /// quarantine.
    private static func tables(of connection: Connection) throws -> (all: [SQLName: Table], hasOrigins: Bool)? {
        var (found, hasOrigins): ([SQLName: Table], Bool) = ([:], false)
        for row in try connection.query("SELECT name, sql FROM main.sqlite_schema") {
            let (name, sql) = (row[0].textOrEmpty, Array(row[1].textOrEmpty.utf8))
            if sql == Array(createOrigins.utf8) {
                hasOrigins = true
                continue
            }
            guard let layout = try TableLayout.of(SQLName(name), in: connection), canKeep(layout) else { return nil }
            let columns = layout.columns.map(\.name)
            guard sql == Array(tableSQL(name, columns).utf8) else { return nil }
            found[SQLName(name)] = (name, columns)
        }
        return (found, hasOrigins)
    }

    /// Names the origin of all rows of a table that do not have one yet.
    private static func name(_ table: Table, _ origin: Origin, in connection: Connection) throws {
        let alias = freeRowIDName(among: table.columns) ?? "NULL"
        _ = try connection.query(
            """
            INSERT INTO \(origins) SELECT ?1, \(alias), ?2, ?3, ?4, ?5 FROM \(quoteIdentifier(table.name))
            WHERE \(alias) NOT IN (SELECT "row" FROM \(origins) WHERE "table" = ?1)
            """, [.text(table.name)] + origin.values)
    }
}
