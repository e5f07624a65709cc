import CSQLite
import MoultBasics
import MoultLibc

extension Connection {
    /// Runs `body`, which only reads, with a substitute for each collation that only the app has. SQLite needs the collations of
    /// all indexes of a table even to read it row by row. The substitutes compare bytes, so they must not be used for look-ups,
    /// and a write would corrupt the app's indexes: the connection cannot write until the body has returned.
    package func readingWithStandIns<R>(_ body: () throws -> R) throws -> R {
        // A guarded connection cannot write at all, and may not change the setting.
        let setsQueryOnly = authorizer == nil
        let wasQueryOnly = setsQueryOnly ? try int("PRAGMA query_only") : 0
        if setsQueryOnly { try execute("PRAGMA query_only = 1") }
        let result = Result {
            let missing = try missingCollations()
            var isCurrent = !setsQueryOnly || missing.isEmpty
            return try supplying([.collation], missing) {
                // SQLite caches, with the schema, that a table could not be read, so the cached schema is dropped.
                if !isCurrent { try execute("PRAGMA writable_schema = RESET") }
                isCurrent = true
                return try body()
            }
        }
        if setsQueryOnly { try execute("PRAGMA query_only = \(wasQueryOnly)") }
        return try result.get()
    }

    /// Runs the body with a substitute for each of the collations and for everything else of these kinds that it turns out to need.
    private func supplying<R>(_ kinds: [AppNeed.Kind], _ collations: [String] = [], body: () throws -> R) throws -> R {
        var supplied: [AppNeed] = []
        let result = Result {
            for name in collations { try supply(AppNeed(.collation, name), &supplied) }
            while true {
                do { return try body() } catch {
                    guard let need = AppNeed(error), kinds.contains(need.kind), !supplied.contains(need) else {
                        throw error
                    }
                    try supply(need, &supplied)
                }
            }
        }
        for need in supplied {
            if need.kind == .collation { try setCollation(need.name, nil) } else { try setFunction(need.name, nil) }
        }
        return try result.get()
    }

    /// Returns the collations of indexes that are not built into SQLite. (PRAGMA collation_list would also list collations that
    /// have been removed.)
    package func missingCollations(of table: String? = nil) throws -> [String] {
        let used = try query(
            """
            SELECT DISTINCT x.coll FROM main.sqlite_schema AS s, pragma_index_list(s.name, 'main') AS l,
                pragma_index_xinfo(l.name, 'main') AS x
            WHERE s.type = 'table' AND x.coll IS NOT NULL AND (?1 IS NULL OR s.name = ?1)
            """, [table.map { .text($0) } ?? .null])
        return used.map(\.[0].textOrEmpty).filter { IndexKey.Collation(rawValue: $0.uppercased()) == nil }
    }

    /// Returns whether a table is stored in an order that only the app knows. A statement that reads such a table without a
    /// substitute fails, and keeps failing even if a substitute is added later.
    package func needsStandIns(_ table: TableLayout) throws -> Bool {
        try table.rowIDName == nil && !missingCollations(of: table.name).isEmpty
    }

    private func supply(_ need: AppNeed, _ supplied: inout [AppNeed]) throws {
        if need.kind == .function {
            try setFunction(need.name) { context, _, _ in sqlite3_result_null(context) }
        } else {
            try setCollation(need.name) { _, oneCount, one, otherCount, other in
                let count = min(oneCount, otherCount)
                var order: Int32 = 0
                if count > 0, let one, let other { order = memcmp(one, other, Int(count)) }
                return order != 0 ? order : oneCount - otherCount
            }
        }
        supplied.append(need)
    }

    private func setCollation(
        _ name: String,
        _ compare: (
            @convention(c) (UnsafeMutableRawPointer?, Int32, UnsafeRawPointer?, Int32, UnsafeRawPointer?) -> Int32
        )?
    ) throws {
        try check(
            sqlite3_create_collation_v2(try handle, name, SQLITE_UTF8, nil, compare, nil),
            doing: "register a collation on \(path)")
    }

    /// Returns whether a statement failed because a collation is missing. For a table WITHOUT ROWID ordered by such a
    /// collation, SQLite reports that it finds no plan.
    private static func needsStandIn(_ error: any Error) -> Bool {
        AppNeed(error)?.kind == .collation || error.sqlite?.message == "no query solution"
    }

    /// Returns whether a statement failed because something that only the app has is missing.
    package static func needsApp(_ error: any Error) -> Bool { AppNeed(error) != nil || needsStandIn(error) }

    /// Returns the number of rows in a table, even if its indexes need collations that only the app has.
    package func rowCount(_ table: String) throws -> Int {
        // For a plain count, NOT INDEXED is enough, and the index of a primary key may need a collation.
        let sql = TableRows(table, primaryKey: nil).countSQL
        do { return Int(try int(sql)) } catch {
            guard Self.needsStandIn(error) else { throw error }
            return try readingWithStandIns { Int(try int(sql)) }
        }
    }

    /// Runs `body` with substitutes for functions and collations that only the app has, so that statements that mention them
    /// can be prepared. No index may depend on them: the caller verifies that before it writes.
    func declaringStandIns<R>(_ body: () throws -> R) throws -> R {
        try supplying([.collation, .function], body: body)
    }

    private func setFunction(
        _ name: String,
        _ function: (@convention(c) (OpaquePointer?, Int32, UnsafeMutablePointer<OpaquePointer?>?) -> Void)?
    ) throws {
        let flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS
        try check(
            sqlite3_create_function_v2(try handle, name, -1, flags, nil, function, nil, nil, nil),
            doing: "register a function on \(path)")
    }
}
