internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

/// The ID of the transaction that last changed a database, in the database itself. It is written in the same transaction of SQLite as
/// the change, so after a crash it alone shows whether that was committed.
/// A database with a release marker has it there. Any other database has it in a table of its own, until the update has ended.
enum TransactionMarker {
    private static let create = "CREATE TABLE \(transactionTable)(\(ReleaseMarker.transaction) TEXT NOT NULL)"

    /// Writes the ID. The caller has begun a transaction. Throws if the app has a table or view with the name of the marker.
    static func write(_ id: String, to connection: Connection) throws {
        if try hasReleaseMarker(connection) {
            _ = try connection.query("UPDATE \(ReleaseMarker.table) SET \(ReleaseMarker.transaction) = ?1", [.text(id)])
            if try connection.int("SELECT count(*) FROM \(ReleaseMarker.table)") > 0 { return }
        }
        if try hasOwnTable(connection) {
            try connection.run("DROP TABLE \(transactionTable)")
        } else if try connection.int("SELECT count(*) FROM sqlite_schema WHERE lower(name) = '\(transactionTable)'") > 0
        {
            throw MoultError(
                .occupied, .refused, what: "\(connection.path) has a table or view named \(transactionTable)",
                why: "moult stores its own record in a table with that name during an update",
                now: "Nothing was changed. Rename it, also in the app.")
        }
        try connection.run(create)
        _ = try connection.query("INSERT INTO \(transactionTable) VALUES(?1)", [.text(id)])
    }

    static func read(_ connection: Connection) throws -> String? {
        for (table, isOwn) in [(transactionTable, hasOwnTable), (ReleaseMarker.table, hasReleaseMarker)]
        where try isOwn(connection) {
            let id = try connection.scalar("SELECT \(ReleaseMarker.transaction) FROM \(table)")
            if case .text(let id)? = id { return id }
        }
        return nil
    }

    /// Reads the ID of the database at a path; nil if SQLite cannot open the file. A transaction that a crash interrupted is rolled back.
    static func read(at place: String) throws -> String? {
        // When SQLite first opens an empty file, it deletes the sidecars, which may have rows.
        guard let facts = try Files.factsThroughLinks(place), facts.kind == .file, facts.size > 0 else { return nil }
        do {
            let connection = try Connection(path: place, access: .readWrite)
            let id = try read(connection)
            try connection.close()
            return id
        } catch let error as MoultError where error.code == .databaseCorrupt { return nil }
    }

    /// Removes the table with this ID, so that an app which compares its schema finds only its own. Returns false if that must be tried
    /// again, as when a process has the database locked. The commands that read the database report what is wrong with it.
    static func remove(_ id: String, at place: String) throws -> Bool {
        do {
            guard try read(at: place) == id else { return true }
            let connection = try Connection(path: place, access: .readWrite, busyTimeout: patience)
            if try hasOwnTable(connection) { try connection.run("DROP TABLE \(transactionTable)") }
            try connection.close()
            return true
        } catch let error as MoultError { return error.code == .databaseCorrupt }
    }

    private static let patience: Int32 = 500

    /// Whether the database has the table of the marker, and not one that the app has created.
    private static func hasOwnTable(_ connection: Connection) throws -> Bool {
        try connection.int("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND sql = '\(create)'") > 0
    }

    private static func hasReleaseMarker(_ connection: Connection) throws -> Bool {
        try connection.int(ReleaseMarker.isThere) > 0
            && connection.int("SELECT count(*) FROM pragma_table_info('\(ReleaseMarker.table)')") == 4
            && connection.int(
                "SELECT count(*) FROM pragma_table_info('\(ReleaseMarker.table)') "
                    + "WHERE name IN ('release', 'sequence', 'digest', '\(ReleaseMarker.transaction)')") == 4
    }
}
