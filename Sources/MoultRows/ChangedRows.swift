internal import MoultBasics
package import MoultSQLite

/// The keys of the rows of a table that differ between two databases.
package struct ChangedRows: Sendable, Equatable {
    package let table: String
    /// The names of the key: its columns, or `rowid`.
    package let key: [String]
    package private(set) var inserted: [[Value]]
    package private(set) var updated: [[Value]]
    package private(set) var deleted: [[Value]]
    /// Why a reader must read the whole table again; nil if the keys are complete.
    package let reload: String?

    package init(
        _ table: String, key: [String] = [], inserted: [[Value]] = [], updated: [[Value]] = [], deleted: [[Value]] = [],
        reload: String? = nil
    ) {
        (self.table, self.key, self.reload) = (table, key, reload)
        (self.inserted, self.updated, self.deleted) = (inserted, updated, deleted)
    }

    package var count: Int { inserted.count + updated.count + deleted.count }

    /// The limit on the keys of one comparison, in bytes.
    private static let longest = 16 << 20

    /// Returns the tables that differ, sorted. A table with more than `limit` changed rows has no keys. A row is known by its
    /// rowid, or by the key of a table WITHOUT ROWID.
    package static func between(_ old: Connection, _ new: Connection, limit: Int) throws -> [ChangedRows] {
        try old.reading {
            try new.reading {
                var changed: [ChangedRows] = []
                var space = longest
                let comparison = try Sides(old, new)
                for name in comparison.names {
                    if let rows = try comparison.compare(name, limit, &space) { changed.append(rows) }
                }
                return changed
            }
        }
    }

    /// Returns the keys, or without them if there are more than `limit`.
    package func limited(to limit: Int) -> ChangedRows {
        count > limit ? ChangedRows(table, reload: Self.tooMany(limit)) : self
    }

    private static func tooMany(_ limit: Int) -> String { "more than \(counted(limit, "row")) changed" }

    private mutating func add(_ difference: RowDifference, _ key: [Value]) {
        switch difference {
        case .added: inserted.append(key)
        case .changed: updated.append(key)
        case .removed: deleted.append(key)
        }
    }

    private struct Sides {
        private let was: Schema
        private let now: Schema
        private let same: Set<SQLName>
        let names: [SQLName]

        init(_ old: Connection, _ new: Connection) throws {
            (was, now) = (try Schema(of: old, ignoring: ownTables), try Schema(of: new, ignoring: ownTables))
            let (before, after) = (try SchemaShape.ofContent(old), try SchemaShape.ofContent(new))
            let shapes = Dictionary(before.tables.map { (SQLName($0.name), $0) }) { first, _ in first }
            same = Set(after.tables.filter { $0 == shapes[SQLName($0.name)] }.map { SQLName($0.name) })
            names = Set(was.withRows.keys).union(now.withRows.keys).sorted()
        }

        /// Returns nil for equal tables.
        func compare(_ name: SQLName, _ limit: Int, _ space: inout Int) throws -> ChangedRows? {
            func reload(_ why: String) -> ChangedRows { ChangedRows(now.name(name), reload: why) }
            guard was.withRows[name] != nil else { return reload("it is new") }
            guard now.withRows[name] != nil else { return reload("it was removed") }
            guard let before = try was.table(name), let after = try now.table(name) else {
                return reload("its name is not valid UTF-8")
            }
            // Only the module of a virtual table could compare its content.
            if before.isVirtual || after.isVirtual { return reload("it is a virtual table") }
            if let obstacle = before.obstacle ?? after.obstacle { return reload(obstacle) }
            guard same.contains(name) else { return reload("its definition changed") }
            do {
                let comparison = try RowComparison(
                    .init(before, was.connection), .init(after, now.connection), rowsMayMove: false)
                guard comparison.isByRowID || after.isWithoutRowID && comparison.key != .content else {
                    return reload("its rows cannot be read by rowid")
                }
                let rows = try keys(comparison, after, limit, space)
                space -= rows.size
                return rows.rows.count == 0 ? nil : rows.rows
            } catch let stop as Stop {
                return reload(stop.why)
            } catch {
                guard let need = AppNeed(error) else { throw error }
                return reload("it needs the app's \(need)")
            }
        }

        private struct Stop: Error { let why: String }

        private func keys(
            _ comparison: RowComparison, _ table: TableLayout, _ limit: Int, _ space: Int
        ) throws -> (rows: ChangedRows, size: Int) {
            let (oldKey, newKey) = (comparison.old.identity, comparison.new.identity)
            let names =
                comparison.isByRowID
                ? [table.rowIDColumn.map { table.columns[$0].name } ?? "rowid"]
                : table.primaryKey.map { table.columns[$0].name }
            var (rows, size) = (ChangedRows(table.name, key: names), 0)
            try comparison.run { difference, old, new in
                if rows.count == limit { throw Stop(why: ChangedRows.tooMany(limit)) }
                let key = try difference == .removed ? Self.key(old, oldKey) : Self.key(new, newKey)
                size += key.reduce(0) { $0 + $1.size }
                if size > space { throw Stop(why: "the keys of the changed rows are too long") }
                rows.add(difference, key)
            }
            return (rows, size)
        }

        private static func key(_ row: borrowing Statement, _ columns: [Int32]) throws -> [Value] {
            var key: [Value] = []
            for column in columns {
                if row.storage(column) != .text {
                    key.append(try row.value(column))
                    continue
                }
                guard let text = try row.withText(column, { String(validating: $0, as: UTF8.self) }) else {
                    throw Stop(why: "a key is not valid UTF-8")
                }
                key.append(.text(text))
            }
            return key
        }
    }
}

extension Value {
    fileprivate var size: Int {
        switch self {
        case .null, .integer, .real: 16
        case .text(let text): 16 + text.utf8.count
        case .blob(let bytes): 16 + bytes.count
        }
    }
}
