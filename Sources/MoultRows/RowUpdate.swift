import MoultBasics
package import MoultSQLite

/// Brings rows that were carried over from a copy of a database up to date with the database, in which apps have changed rows
/// since. Only the difference is carried. This is possible where each row of the copy either is in the new database with its key,
/// or equals a shipped row with its key, and where a row that did not change is selected, and has its parents, as before. In all
/// other cases the result is nil, and the caller carries all rows over again.
package struct RowUpdate {
    private let transfer: RowTransfer
    /// The outcomes of the transfer from the copy.
    private let outcomes: [TableOutcome]
    /// With more changed rows, it is faster to carry all of them over.
    private static let maxRows = 50_000

    package init(_ transfer: RowTransfer, after outcomes: [TableOutcome]) {
        (self.transfer, self.outcomes) = (transfer, outcomes)
    }

    /// Carries the difference over in the current transaction of the new database. If the result is nil, the caller must roll that
    /// transaction back. `pristine` is the new database before any row was carried over.
    package func run(
        from copy: Connection, to live: Connection, in new: Connection, pristine: Connection
    ) throws -> [TableOutcome]? {
        try copy.reading {
            try live.reading {
                guard !transfer.rules.contains(where: { $0.conditions.contains(where: Selection.mayReadOtherRows) }),
                    try isSameSchema(copy, live), try isUnchanged(SQLName(transfer.rejects.name), copy, live)
                else {
                    return nil
                }
                return try carry(copy, live, new, pristine)
            }
        }
    }

    private func isSameSchema(_ copy: Connection, _ live: Connection) throws -> Bool {
        let sql = "SELECT type, name, tbl_name, sql FROM main.sqlite_schema ORDER BY type, name"
        return try copy.query(sql) == live.query(sql)
    }

    private func isUnchanged(_ table: SQLName, _ copy: Connection, _ live: Connection) throws -> Bool {
        guard let layout = try TableLayout.of(table, in: live) else { return true }
        return try changes(layout, copy, live).map { $0.added.isEmpty && $0.removed.isEmpty } ?? false
    }

    private func carry(
        _ copy: Connection, _ live: Connection, _ new: Connection, _ pristine: Connection
    ) throws -> [TableOutcome]? {
        var rules: [RowRule] = []
        var shrunk: [String] = []
        let keys = try ForeignKeys(new)
        for rule in transfer.rules {
            guard let layout = try TableLayout.of(SQLName(rule.table), in: live) else { continue }
            guard let change = try changes(layout, copy, live) else { return nil }
            if change.added.isEmpty, change.removed.isEmpty { continue }
            guard let outcome = outcomes.first(where: { SQLName($0.table) == SQLName(rule.table) }), outcome.isPlain,
                let target = try TableLayout.of(SQLName(rule.table), in: new),
                let key = try key(rule, layout, target)
            else { return nil }
            let children = keys.children(of: [SQLName(target.name)])
            // A row that was rejected may have its parent now.
            guard outcomes.allSatisfy({ $0.isPlain || !children.contains(SQLName($0.table)) }) else { return nil }
            if !change.removed.isEmpty {
                // Rows that refer to a removed row would have to go, too.
                guard children.isEmpty else { return nil }
                guard try remove(change.removed, key, layout, target, copy, new, pristine) else { return nil }
                shrunk.append(target.name)
            }
            var rule = rule
            rule.rowIDs = change.added
            rules.append(rule)
        }
        guard rules.reduce(0, { $0 + ($1.rowIDs?.count ?? 0) }) <= Self.maxRows else { return nil }
        let added = try RowTransfer(rules: rules, rejects: transfer.rejects.repeatable).run(from: live, to: new)
        guard added.allSatisfy(\.isPlain) else { return nil }
        try SearchIndexes.rebuild(in: new, dependingOn: shrunk)
        return try outcomes.map { try count($0, live) }
    }

    /// Returns the outcome with the present number of rows.
    private func count(_ outcome: TableOutcome, _ live: Connection) throws -> TableOutcome {
        guard outcome.isPlain, let rule = transfer.rules.first(where: { $0.table == outcome.table }) else {
            return outcome
        }
        var outcome = outcome
        outcome.selected = try RowSelection(table: rule.table, conditions: rule.conditions).count(in: live)
        outcome.carried = outcome.selected
        return outcome
    }

    private struct Changes {
        /// The rowids of rows that are new or differ.
        var added: [Int64] = []
        /// The rowids of the copy's rows that are gone or differ.
        var removed: [Int64] = []
    }

    /// Returns nil if rowids do not identify the rows, or if too many rows have changed.
    private func changes(_ layout: TableLayout, _ copy: Connection, _ live: Connection) throws -> Changes? {
        struct TooMany: Error {}
        var changes = Changes()
        do {
            try RowComparison(.init(layout, copy), .init(layout, live)).run { difference, before, now in
                if layout.rowIDName == nil || max(changes.added.count, changes.removed.count) >= Self.maxRows {
                    throw TooMany()
                }
                if difference != .removed { changes.added.append(now.int64(0)) }
                if difference != .added { changes.removed.append(before.int64(0)) }
            }
            return changes
        } catch is TooMany { return nil }
    }

    /// Removes the carried rows that have changed or are gone. A row of the new content with the same key stays, as it does when
    /// all rows are carried over. Returns false if a row has no key.
    private func remove(
        _ rowIDs: [Int64], _ key: Key, _ layout: TableLayout, _ target: TableLayout, _ copy: Connection,
        _ new: Connection, _ pristine: Connection
    ) throws -> Bool {
        try new.with(.foreignKeys, false) {
            try new.with(.triggers, false) {
                let rows = try StoredRows(layout, copy)
                let shipped = try RowStatement(
                    "SELECT 1 FROM \(target.sql)", where: key.names, are: key.columns, in: pristine)
                let deletion = try RowStatement(
                    "DELETE FROM \(target.sql)", where: key.names, are: key.columns, in: new)
                for rowID in rowIDs {
                    let hasKey = try rows.withRow(.rowID(rowID)) { row in
                        for column in key.columns where row.isNull(column) { return false }
                        if try !shipped.contains(row) { try deletion.run(like: row) }
                        return true
                    }
                    if hasKey == false { return false }
                }
                return true
            }
        }
    }

    /// The key by which a row of the new database is found for a row of the old one: the names of the new table's columns in SQL, and
    /// the places in the old row.
    private typealias Key = (names: [String], columns: [Int32])

    private func key(_ rule: RowRule, _ old: TableLayout, _ new: TableLayout) throws -> Key? {
        guard !new.isWithoutRowID else { return nil }
        let key = new.rowIDColumn.map { [$0] } ?? new.primaryKey
        let found = try ColumnMap(old, new, renamed: rule.renames(from: old, to: new)).places(key)
        // The old key must be the same, or two old rows could have the same new key.
        let oldKey = old.rowIDColumn.map { [$0] } ?? old.primaryKey
        guard let found, !key.isEmpty, Set(found) == Set(oldKey.map { Int32($0 + 1) }) else { return nil }
        return (key.map { new.columnsSQL[$0] }, found)
    }
}

extension TableOutcome {
    /// Whether each selected row is in the new table, and nothing else was changed or left behind.
    fileprivate var isPlain: Bool {
        rejected == 0 && recorded == 0 && shipped == 0 && unplaced == 0 && shippedLosers == 0 && incomplete == 0
    }
}
