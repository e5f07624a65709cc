internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite

/// Creates a database from the bytes of the old database and the rows of the new one. Unchanged rows keep their place on their
/// pages, so a patch from the old file to the result is small.
struct Evolution {
    /// The database of the previous release; read-only.
    let old: String
    /// The database that the script created; read-only.
    let new: String
    let result: String

    enum Outcome: Equatable {
        case evolved(RowChanges, freePages: Int, pages: Int)
        /// The layout cannot be kept, for this reason.
        case unfit(String)
    }

    func run() throws -> Outcome {
        try copyOld()
        let connection = try Connection(path: result, access: .readWrite)
        // After a failure the result is discarded, so nothing but the rollback of a statement has to work.
        try connection.execute("PRAGMA synchronous = OFF; PRAGMA secure_delete = ON; PRAGMA cache_size = -2000")
        try connection.execute("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON")
        try connection.set(.triggers, false)
        // SQLite cannot attach a database with a different encoding.
        if try connection.header().encoding != encodingOfNew() {
            try connection.close()
            return .unfit("the text encoding differs")
        }
        try connection.attach(new, as: "new", access: .readOnly)
        let outcome = try evolve(connection)
        try connection.detach("new")
        try connection.close()
        return outcome
    }

    private func encodingOfNew() throws -> DatabaseHeader.TextEncoding? {
        let connection = try Connection(path: new, access: .readOnly)
        let encoding = try connection.header().encoding
        try connection.close()
        return encoding
    }

    /// Throws unless the file exists and is complete without sidecars, as in a release.
    static func check(_ old: String) throws {
        func reject(_ why: String) -> MoultError {
            MoultError(
                .output, .refused, what: "cannot keep the layout of \(old)", why: why,
                now: "Specify the database file of a release.")
        }
        guard try Files.factsThroughLinks(old)?.kind == .file else { throw reject("no such file") }
        let sidecars = try Sidecars.of(old)
        if let beside = sidecars.wal ?? sidecars.journal { throw reject("\(beside.path) is next to the file") }
        let connection = try Connection(path: old, access: .immutable)
        let header = try connection.header()
        try header.requireSize(connection.fileSize(), path: old)
        try connection.close()
        if header.isWAL { throw reject("it is in WAL mode") }
    }

    private func copyOld() throws {
        let from = try Descriptor(old, .read)
        let to = try Descriptor(result, .create, mode: 0o644)
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        while true {
            let count = try buffer.withUnsafeMutableBytes { try from.read(into: $0) }
            if count == 0 { break }
            try buffer.withUnsafeBytes { try to.write(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
        }
        try to.close()
    }

    private func evolve(_ connection: Connection) throws -> Outcome {
        if let difference = try schemaDifference(connection) { return .unfit(difference) }
        let keepRowids = try connection.int("SELECT count(*) FROM pragma_table_list WHERE type = 'virtual'") > 0
        let tables = try connection.query(
            """
            SELECT name, wr FROM pragma_table_list
            WHERE schema = 'main' AND type IN ('table', 'shadow') AND name <> 'sqlite_schema'
            ORDER BY name LIKE 'sqlite\\_%' ESCAPE '\\', name
            """)
        var changes = RowChanges()
        for row in tables {
            guard let name = row[0].text else { continue }
            let match = try TableMatch(
                name, withoutRowid: row[1] == .integer(1), keepRowids: keepRowids, on: connection)
            guard let match else { return .unfit("\(name) has columns called rowid, _rowid_ and oid") }
            guard try connection.transaction(.immediate, { try RowCarrier(match, connection).carry(&changes) }) else {
                return .unfit("the rows of \(name) cannot be carried over")
            }
        }
        for pragma in ["user_version", "application_id"] {
            let wanted = try connection.int("PRAGMA new.\(pragma)")
            // Setting a pragma to its current value would also change the file.
            if try connection.int("PRAGMA main.\(pragma)") != wanted {
                try connection.run("PRAGMA main.\(pragma) = \(wanted)")
            }
        }
        return .evolved(
            changes, freePages: Int(try connection.int("PRAGMA main.freelist_count")),
            pages: Int(try connection.int("PRAGMA main.page_count")))
    }

    /// Returns why the new database cannot have the layout of the old one; nil if it can.
    private func schemaDifference(_ connection: Connection) throws -> String? {
        for pragma in ["page_size", "auto_vacuum"] {
            let old = try connection.int("PRAGMA main.\(pragma)")
            let new = try connection.int("PRAGMA new.\(pragma)")
            if old != new { return "\(pragma) was \(old) and is now \(new)" }
        }
        let differing = try connection.scalar(
            """
            SELECT name FROM (SELECT * FROM
                (SELECT type, name, tbl_name, sql FROM main.sqlite_schema
                    EXCEPT SELECT type, name, tbl_name, sql FROM new.sqlite_schema)
                UNION ALL SELECT * FROM
                (SELECT type, name, tbl_name, sql FROM new.sqlite_schema
                    EXCEPT SELECT type, name, tbl_name, sql FROM main.sqlite_schema))
            ORDER BY name
            """)
        return differing?.text.map { "the definition of \($0) differs" }
    }
}
