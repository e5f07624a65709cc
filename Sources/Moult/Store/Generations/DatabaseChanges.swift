package import MoultBasics
package import MoultRows
import MoultSQLite

/// The rows of a database that changed between two releases.
package struct DatabaseChanges: Sendable, Equatable {
    /// The name in the manifest.
    package let name: String
    /// The tables that differ.
    package private(set) var tables: [ChangedRows] = []
    /// Why a reader must read the whole database again; nil if `tables` is complete.
    package private(set) var reload: String?

    /// The number of changed rows of a table from which on a reader must read the whole table again, unless it says otherwise.
    package static let standardLimit = 10_000

    package init(_ name: String, tables: [ChangedRows]) { (self.name, self.tables) = (name, tables) }
    package init(_ name: String, reload: String) { (self.name, self.reload) = (name, reload) }

    func limited(to limit: Int) -> DatabaseChanges {
        var changes = self
        changes.tables = tables.map { $0.limited(to: limit) }
        return changes
    }

    package var json: JSON {
        .record(["name": name, "reload": reload, "tables": reload == nil ? tables.map(\.json) : nil])
    }

    init(_ fields: Fields) throws {
        name = try fields.string("name")
        reload = try fields.optionalString("reload")
        if reload == nil { tables = try fields.objects("tables").map { try ChangedRows($0) } }
    }
}

extension ChangedRows {
    fileprivate var json: JSON {
        func keys(_ rows: [[Value]]) -> JSON { .array(rows.map { .array($0.map(\.json)) }) }
        if let reload { return .record(["name": table, "reload": reload]) }
        return .record([
            "name": table, "key": key, "inserted": keys(inserted), "updated": keys(updated), "deleted": keys(deleted),
        ])
    }

    fileprivate init(_ fields: Fields) throws {
        let name = try fields.string("name")
        if let reload = try fields.optionalString("reload") {
            self.init(name, reload: reload)
            return
        }
        let key = try fields.optionalStrings("key") ?? []
        func rows(_ field: String) throws -> [[Value]] {
            try (fields.json(field)?.array ?? []).map { row in
                let values = (row.array ?? []).compactMap { Value(json: $0) }
                guard values.count == key.count else { throw fields.fail(field, "must be a list of keys") }
                return values
            }
        }
        self.init(
            name, key: key, inserted: try rows("inserted"), updated: try rows("updated"), deleted: try rows("deleted"))
    }
}
