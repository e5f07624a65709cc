import MoultBasics
import MoultSQLite

/// One attempt to carry over all rows.
final class TransferPass {
    private let transfer: RowTransfer
    private let old: Connection
    private let new: Connection
    private let rejects: RejectWriter
    private var transfers: [TableTransfer] = []
    private(set) var outcomes: [TableOutcome] = []
    /// The number of shipped rows of tables without a rule that were deleted because of their foreign keys.
    private var orphans: [SQLName: Int] = [:]

    init(_ transfer: RowTransfer, from old: Connection, to new: Connection) throws {
        (self.transfer, self.old, self.new) = (transfer, old, new)
        rejects = try RejectWriter(transfer.rejects, new)
    }

    /// Carries over the rows except `excluded`, which lists rows by table and number, with the reason.
    func run(excluding excluded: [SQLName: [Int: String]]) throws {
        // A restored table brings back no records of other tables, which the operator may have handled.
        if !transfer.rejects.isRepeatable { try rejects.carryRecords(from: old) }
        for rule in transfer.rules {
            guard let layout = try TableLayout.of(SQLName(rule.table), in: old) else {
                try requireNoOtherKind(rule)
                continue
            }
            guard let target = try TableLayout.of(SQLName(rule.table), in: new) else {
                try count(rule, layout)
                continue
            }
            let columns = rule.renames(from: layout, to: target)
            let source = layout.adding(columnsStoredIn: target, renamed: columns)
            let map = try ColumnMap(source, target, renamed: columns)
            guard !map.pairs.isEmpty else {
                try count(rule, layout)
                continue
            }
            let table = try TableTransfer(
                rule, map, from: source, old, into: target, new, rejects,
                shipped: transfer.shipped, ownShipped: transfer.ownShipped)
            try table.run(from: old, excluding: excluded[SQLName(rule.table)] ?? [:])
            transfers.append(table)
            outcomes.append(table.outcome)
        }
    }

    /// Throws if the rule is for a view or a virtual table, whose rows cannot be carried over.
    private func requireNoOtherKind(_ rule: RowRule) throws {
        let names = try old.query("PRAGMA main.table_list(\(quoteIdentifier(rule.table)))")
        guard names.contains(where: { $0[0] == .text("main") }) else { return }
        throw MoultError(
            .selection, .refused, what: "cannot carry over the rows of table \(rule.table)",
            why: "\(rule.table) is not an ordinary table")
    }

    private func count(_ rule: RowRule, _ layout: TableLayout) throws {
        let sql = "\(layout.rows.countSQL)\(layout.rows.whereSQL(rule.conditions))"
        let rows = Int(try old.int(sql))
        outcomes.append(TableOutcome(table: rule.table, selected: rows, unplaced: rows))
    }

    /// Returns the carried rows that violate a foreign key, by table and number, with the reason. Other rows that violate a
    /// foreign key because a row that they refer to was replaced are moved to the reject table; any other violation throws.
    /// `dangling` lists, by table, the rows that violated a foreign key before; they are left alone.
    func violations(except dangling: [SQLName: Set<KeyDigest>]) throws -> [SQLName: [Int: String]] {
        let keys = try ForeignKeys(new)
        var all: [SQLName: [Int: String]] = [:]
        var replaced = Set(
            transfers.filter { $0.outcome.shippedLosers > 0 }.map { SQLName($0.rows.layout.name) })
        var pending = Set(transfers.filter(\.hasInserted).map { SQLName($0.rows.layout.name) })
            .intersection(keys.children)
        pending.formUnion(keys.children(of: replaced))
        while let child = pending.sorted().first {
            pending.remove(child)
            let transfer = transfers.first { SQLName($0.rows.layout.name) == child }
            guard let layout = try transfer?.rows.layout ?? TableLayout.of(child, in: new) else { continue }
            let rows = try transfer?.rows ?? StoredRows(layout, new)
            var hasDisplaced = false
            for violation in try keys.violations(in: rows, new) {
                if let before = dangling[child], try before.contains(rows.digest(of: violation.key)) { continue }
                if let number = try transfer?.number(ofRow: violation.key) {
                    all[child, default: [:]][number] = "it refers to a row of \(violation.parent) that does not exist"
                } else if replaced.contains(violation.parent) {
                    try displace(violation.key, rows, transfer)
                    hasDisplaced = true
                } else {
                    throw MoultError(
                        .shippedViolation, .refused, what: "the new content violates a foreign key",
                        why: "a row of \(layout.name) refers to a row of \(violation.parent) that does not exist",
                        now: "Publish the database without that row.")
                }
            }
            guard hasDisplaced else { continue }
            replaced.insert(child)
            pending.formUnion(keys.children(of: [child]))
        }
        return all
    }

    private func displace(_ key: StoredRows.Key, _ rows: StoredRows, _ transfer: TableTransfer?) throws {
        if let transfer { return try transfer.displace(key) }
        guard let json = try rows.withRow(key, { try rows.json($0) }) else { return }
        try rejects.writeOnce(json, of: rows.layout.name, because: RowTransfer.orphaned)
        try rows.delete(key)
        orphans[SQLName(rows.layout.name), default: 0] += 1
    }

    /// Completes the outcomes, rebuilds full-text indexes, and raises AUTOINCREMENT counters.
    func finish() throws {
        let changed = transfers.filter { $0.hasChanged || $0.outcome.shippedLosers > 0 }.map(\.rows.layout.name)
        outcomes = outcomes.map { outcome in
            transfers.first { SQLName($0.rule.table) == SQLName(outcome.table) }?.outcome ?? outcome
        }
        // In the app's own database, and under a lock, only the encoding with the fault is worth the time.
        let isBrief = transfer.isLive || transfer.rules.contains { $0.rowIDs != nil }
        let isChecked = try !isBrief || new.isUTF16
        let inserted = transfers.filter { $0.hasInserted && isChecked }.map(\.rows.layout.name)
        outcomes += orphans.sorted { $0.key < $1.key }.map { TableOutcome(table: $0.key.text, shippedLosers: $0.value) }
        close()
        try SearchIndexes.rebuild(in: new, dependingOn: changed + orphans.keys.map(\.text))
        try RowSequences.raise(RowSequences.all(in: old), in: new)
        for table in inserted { try CarriedIndexes.require(table, in: new) }
    }

    /// Closes all statements, because open statements would block a rollback.
    func close() { transfers = [] }
}
