import MoultBasics
import MoultSQLite

final class TableTransfer {
    let rule: RowRule
    let old: TableLayout
    let rows: StoredRows
    private(set) var outcome: TableOutcome
    /// The number of the old row that is assigned to a row of the new table, by the digest of the new row.
    private var claims = RowClaims()
    private(set) var hasChanged = false
    private(set) var hasInserted = false

    private let map: ColumnMap
    private let inserter: RowInserter
    private let rejects: RejectWriter
    private let connection: Connection
    private let isOldUTF16: Bool
    private let encoding: DatabaseHeader.TextEncoding?
    /// The columns of an old row that contain the identity of the new row; nil if they do not contain all of it.
    private let keyColumns: [Int32]?
    /// The rows of the new table that no key identifies; nil if keys identify all rows.
    private let equals: EqualRows?
    /// The rows to leave out, because a release shipped them.
    private let shipped: [(rows: ShippedRows, isOwn: Bool)]

    private static let replaced = "a carried row has the same key"

    init(
        _ rule: RowRule, _ map: ColumnMap, from old: TableLayout, _ oldConnection: Connection, into new: TableLayout,
        _ connection: Connection, _ rejects: RejectWriter, shipped: [Connection] = [],
        ownShipped: Connection? = nil
    ) throws {
        self.shipped = try shipped.compactMap { connection in
            try ShippedRows(old, oldConnection, in: connection).map { ($0, connection === ownShipped) }
        }
        (self.rule, self.old, self.map, self.rejects, self.connection) = (rule, old, map, rejects, connection)
        rows = try StoredRows(new, connection)
        inserter = try RowInserter(map, from: old, into: rows, connection)
        equals =
            new.isWithoutRowID || map.pairs.contains { $0.new == new.rowIDColumn }
                || old.identity.isEmpty || inserter.rowID == .required
            ? nil : try EqualRows(map, old, oldConnection, in: rows, connection)
        outcome = TableOutcome(table: rule.table)
        isOldUTF16 = try oldConnection.isUTF16
        encoding = try Connection.commonEncoding(oldConnection, connection)
        let key = new.isWithoutRowID ? new.primaryKey : new.rowIDColumn.map { [$0] } ?? []
        keyColumns = inserter.rowID != .notCarried ? [0] : key.isEmpty ? nil : map.places(key)
    }

    /// Carries over all selected rows. `excluded` lists rows, by number, that must be rejected, with the reason.
    func run(from connection: Connection, excluding excluded: [Int: String]) throws {
        try connection.withStatement(selectSQL()) { row in
            guard row.isReadOnly, row.parameterCount == 0 else {
                throw MoultError(
                    .selection, .refused, what: "cannot select rows of table \(rule.table)",
                    why: "the condition would modify the database, or contains a parameter")
            }
            let flag = Int32(old.columns.count + 1)
            var number = 0
            while try row.step() {
                outcome.selected += 1
                // Each release is asked, so that the same shipped row of two releases excuses only one old row.
                let releases = try shipped.filter { try $0.rows.contains(row) }
                if !releases.isEmpty {
                    outcome.shipped += 1
                    // No other old row may count as the row that the new database got from its own release.
                    if releases.contains(where: \.isOwn) { _ = try claimEqual(row, nil) }
                } else if let reason = excluded[number] {
                    try reject(row, reason)
                } else if try carry(row, number) {
                    outcome.carried += 1
                    if row.int64(flag) != 0 { outcome.incomplete += 1 }
                }
                number += 1
            }
        }
        guard outcome.selected == outcome.carried + outcome.rejected + outcome.shipped else {
            throw MoultError(
                .sqlite, what: "cannot carry over the rows of table \(rule.table)",
                why: "\(outcome.selected) were selected, \(outcome.carried) carried and \(outcome.rejected) rejected")
        }
    }

    /// Returns a statement that selects the rowid, all stored columns, and whether a column that the new table lacks has a
    /// value. The order of the rows is always the same, so that a row's number identifies the row.
    func selectSQL() throws -> String {
        let columns = try [old.rowIDName ?? "NULL"] + old.columnsSQL + [map.losesValue(old)]
        let only = rule.rowIDs.map { numbers in
            "\(old.rowIDName ?? "NULL") IN (\(numbers.map(String.init).joined(separator: ",")))"
        }
        let order = old.isWithoutRowID ? old.identity : old.rowIDName.map { [$0] } ?? []
        return
            "SELECT \(columns.joined(separator: ", ")) FROM \(old.rows.sql)\(old.rows.whereSQL(rule.conditions, and: only))"
            + (order.isEmpty ? "" : " ORDER BY \(order.joined(separator: ", "))")
    }

    /// Carries a row over. Returns whether it is in the new table.
    private func carry(_ row: borrowing Statement, _ number: Int) throws -> Bool {
        if let keyColumns, let digest = try identical(to: row, keyColumns) {
            try claims.assign(number, to: digest)
            return true
        }
        if try claimEqual(row, number) { return true }
        var anyRowID = false
        while true {
            switch try inserter.insert(row, anyRowID: anyRowID) {
            case .inserted(let key):
                guard let changed = try claim(key, row, number) else { return true }
                try rows.delete(key)
                return try reject(row, changed)
            case .rowIDTaken: anyRowID = true
            case .misfit(let reason): return try reject(row, reason)
            case .conflict(let reason): return try resolve(row, number, reason, anyRowID: anyRowID)
            }
        }
    }

    /// Returns the digest of the existing row with the same identity; nil if that row has other values, or is assigned to
    /// another old row.
    private func identical(to row: borrowing Statement, _ columns: [Int32]) throws -> KeyDigest? {
        // `nil`: no row; `.some(nil)`: a row that is not identical.
        let found = try rows.withRow(keyIn: row, columns) { there -> KeyDigest? in
            guard try firstDifference(row, there) == nil else { return nil }
            let digest = try rows.digest(there)
            return try claims.number(of: digest) == nil ? digest : nil
        }
        return found ?? nil
    }

    /// Assigns an existing row with the same values, which is not assigned to another old row yet, to this old row. For rows
    /// that no key identifies.
    private func claimEqual(_ row: borrowing Statement, _ number: Int?) throws -> Bool {
        guard let equals else { return false }
        while let rowID = try equals.next(row) {
            let wasClaimed = try rows.withRow(.rowID(rowID)) { there -> Bool in
                let digest = try rows.digest(there)
                guard try claims.number(of: digest) == nil && firstDifference(row, there) == nil else { return false }
                if let number { try claims.assign(number, to: digest) }
                return true
            }
            if wasClaimed == true { return true }
        }
        return false
    }

    /// Assigns the old row to the row that was just inserted for it. If their content differs, returns the difference instead.
    private func claim(_ key: StoredRows.Key, _ row: borrowing Statement, _ number: Int) throws -> String? {
        let changed = try rows.withRow(key) { there -> String in
            if let difference = try firstDifference(row, there) { return difference }
            try claims.assign(number, to: rows.digest(there))
            return ""
        }
        guard let changed else { return "the row cannot be read back" }
        guard changed.isEmpty else { return changed }
        (hasChanged, hasInserted) = (true, true)
        return nil
    }

    private func firstDifference(_ row: borrowing Statement, _ there: borrowing Statement) throws -> String? {
        for pair in map.pairs {
            let (before, after) = (Int32(pair.old + 1), rows.first + Int32(pair.new))
            if try !row.stores(before, as: there, after, encoding) {
                let (was, now) = (row.storage(before), there.storage(after))
                let change = was == now ? "" : " from \(was) to \(now)"
                return "the value of column \(rows.layout.columns[pair.new].name) would change\(change)"
            }
        }
        return nil
    }

    /// Resolves a conflict with existing rows that have the same key. Returns whether the row is in the new table.
    private func resolve(_ row: borrowing Statement, _ number: Int, _ reason: String, anyRowID: Bool) throws -> Bool {
        var losers: [String] = []
        var reason = reason
        // Returns the rows that were removed for this one.
        func undo() throws {
            if !losers.isEmpty { try connection.execute("ROLLBACK TO moult_row; RELEASE moult_row") }
        }
        while true {
            switch try inspectConflict(row, number, isFirst: losers.isEmpty, anyRowID: anyRowID) {
            case .identical: return true
            case .carried:
                try undo()
                return try reject(row, "another carried row has the same key: \(reason)")
            case .stays:
                try undo()
                let why = "the new content has another row with the same key: \(reason)"
                return try reject(row, why, mayBlock: false)
            case .displaced(let json): losers.append(json)
            }
            switch try inserter.insert(row, anyRowID: anyRowID) {
            case .rowIDTaken:
                // Only the first attempt can have this result: the next one does not use the old rowid.
                throw MoultError(.sqlite, what: "cannot insert into \(rule.table)", why: "its rowid was taken twice")
            case .conflict(let next): reason = next
            case .misfit(let misfit):
                try undo()
                return try reject(row, misfit)
            case .inserted(let key):
                if let changed = try claim(key, row, number) {
                    try undo()
                    return try reject(row, changed)
                }
                for loser in losers { try rejects.writeOnce(loser, of: rule.table, because: Self.replaced) }
                outcome.shippedLosers += losers.count
                try connection.execute("RELEASE moult_row")
                return true
            }
        }
    }

    private enum Conflict {
        case identical
        case carried
        case stays
        /// The existing row is replaced, and has this content.
        case displaced(String)
    }

    private func inspectConflict(
        _ row: borrowing Statement, _ number: Int, isFirst: Bool, anyRowID: Bool
    ) throws -> Conflict {
        let key = try inserter.conflict(row, anyRowID: anyRowID)
        let found = try key.flatMap { key in
            try rows.withRow(key) { there -> Conflict in
                let digest = try rows.digest(there)
                if try claims.number(of: digest) != nil { return .carried }
                if isFirst, try firstDifference(row, there) == nil {
                    try claims.assign(number, to: digest)
                    return .identical
                }
                return rule.onConflict == .keepUser ? .displaced(try rows.json(there)) : .stays
            }
        }
        guard let key, let found else {
            throw MoultError(
                .sqlite, what: "cannot carry over a row of table \(rule.table)",
                why: "SQLite reports a conflict, and no row with the same key was found")
        }
        switch found {
        case .displaced:
            if isFirst { try connection.execute("SAVEPOINT moult_row") }
            try rows.delete(key)
        case .stays where rule.onConflict == .fail:
            throw MoultError(
                .rowConflict, .refused, what: "cannot carry over a row of table \(rule.table)",
                why: "the new content has a row with the same key and different values")
        default: break
        }
        return found
    }

    /// Writes the row to the reject table, and returns false; throws if the rule requires that.
    @discardableResult
    private func reject(_ row: borrowing Statement, _ reason: String, mayBlock: Bool = true) throws -> Bool {
        if mayBlock, rule.onReject == .block {
            throw MoultError(
                .rowRejected, .refused, what: "a row of table \(rule.table) does not fit into the new table",
                why: reason)
        }
        let json = try RowJSON.text(row, from: 1, old.columns.map(\.name), isUTF16: isOldUTF16)
        if try !rejects.write(json, of: rule.table, because: reason) { outcome.recorded += 1 }
        outcome.rejected += 1
        return false
    }

    /// Returns the number of the old row assigned to this row of the new table; nil if none is.
    func number(ofRow key: StoredRows.Key) throws -> Int? {
        guard let digest = try rows.withRow(key, { try rows.digest($0) }) else { return nil }
        return try claims.number(of: digest)
    }

    /// Moves to the reject table a row of the new content whose foreign key refers to a replaced row.
    func displace(_ key: StoredRows.Key) throws {
        guard let json = try rows.withRow(key, { try rows.json($0) }) else { return }
        try rejects.writeOnce(json, of: rule.table, because: RowTransfer.orphaned)
        try rows.delete(key)
        outcome.shippedLosers += 1
        hasChanged = true
    }
}
