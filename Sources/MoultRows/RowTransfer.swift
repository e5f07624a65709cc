import MoultBasics
package import MoultSQLite

/// Carries rows over one to one, byte for byte, from an old database to a new one. Used on one thread. Each selected row ends up
/// in exactly one place: a row of the new table with the same storage classes and bytes, or a record in the reject table, or it
/// is counted as `unplaced`. Triggers do not fire. Foreign keys are checked at the end, full-text indexes are rebuilt, and
/// AUTOINCREMENT counters never decrease. In a table without INTEGER PRIMARY KEY, a carried row keeps its implicit rowid if that
/// is free, and gets a new one otherwise. If no key identifies a carried row, because the table has none or the keys have a NULL,
/// and the row equals a row of the new content, it is matched with that row instead of being inserted.
package struct RowTransfer {
    package let rules: [RowRule]
    package let rejects: RejectTable
    /// Databases with shipped rows. An old row that equals one of these is left out.
    let shipped: [Connection]
    /// The one of them that belongs to the release of the new database, if any.
    let ownShipped: Connection?
    /// Whether the new database is the app's: rows in it that already violate a foreign key are then no reason to refuse.
    let isLive: Bool

    static let orphaned = "its foreign key refers to a row that a carried row replaced"

    package init(
        rules: [RowRule], rejects: RejectTable, shipped: [Connection] = [], ownShipped: Connection? = nil,
        isLive: Bool = false
    ) {
        (self.rules, self.rejects, self.shipped, self.isLive) = (rules, rejects, shipped, isLive)
        self.ownShipped = ownShipped
    }

    /// Carries the rows over in the current transaction of the new database, and only reads the old one. If it throws, nothing
    /// has changed. Returns the outcomes in the order of the rules, one for each table that the old database has, then those of
    /// tables without a rule from which rows were removed because of their foreign keys.
    package func run(from old: Connection, to new: Connection) throws -> [TableOutcome] {
        guard try new.isInTransaction else {
            throw MoultError(
                .databaseRequest, what: "cannot carry rows over to \(new.path)", why: "no transaction has begun")
        }
        try checkRules()
        // All passes must see the same rows.
        return try old.readingStrictly {
            try old.namingAppExtensions("carry over the rows of \(rules.map(\.table).joined(separator: ", "))") {
                // A transfer to the app's database has no condition, so substitutes for missing collations do not change
                // what it selects.
                try isLive ? old.readingWithStandIns { try carry(old, new) } : carry(old, new)
            }
        }
    }

    private func checkRules() throws {
        var seen: Set<SQLName> = []
        for rule in rules {
            guard seen.insert(SQLName(rule.table)).inserted else {
                throw MoultError(
                    .databaseRequest, what: "cannot carry rows over",
                    why: "table \(rule.table) has more than one rule")
            }
            try Selection.check(rule.conditions, of: rule.table)
        }
    }

    private func carry(_ old: Connection, _ new: Connection) throws -> [TableOutcome] {
        // Unlike the pragma, this switch works inside a transaction.
        try new.with(.foreignKeys, false) {
            try new.with(.triggers, false) {
                try new.execute("SAVEPOINT moult_rows")
                do {
                    let outcomes = try repeatUntilClean(old, new)
                    try new.execute("RELEASE moult_rows")
                    return outcomes
                } catch {
                    try undo(new, cause: error)
                    throw error
                }
            }
        }
    }

    private func undo(_ new: Connection, cause: any Error) throws {
        // Some errors, such as a full disk, have rolled back the whole transaction.
        guard try new.isInTransaction else { return }
        do { try new.execute("ROLLBACK TO moult_rows; RELEASE moult_rows") } catch let second {
            throw MoultError(
                .sqlite, what: "cannot undo the changes to \(new.path)", why: "\(second)",
                now: "Roll back the transaction.", cause: cause)
        }
    }

    /// Repeats the transfer without the carried rows that violate a foreign key, until none does. Each repetition also restores
    /// the rows that the excluded ones had replaced.
    private func repeatUntilClean(_ old: Connection, _ new: Connection) throws -> [TableOutcome] {
        var excluded: [SQLName: [Int: String]] = [:]
        let dangling = isLive ? try ForeignKeys(new).dangling(new) : [:]
        while true {
            let pass = try TransferPass(self, from: old, to: new)
            try pass.run(excluding: excluded)
            let violations = try pass.violations(except: dangling)
            if violations.isEmpty {
                try pass.finish()
                return pass.outcomes
            }
            for (table, rows) in violations { excluded[table, default: [:]].merge(rows) { first, _ in first } }
            pass.closeStatements()
            try new.execute("ROLLBACK TO moult_rows")
        }
    }
}

extension Connection {
    /// Runs the body. An error about a function, collation, module or tokenizer unknown to SQLite gets its own code.
    func namingAppExtensions<R>(_ doing: String, _ body: () throws -> R) throws -> R {
        do { return try body() } catch let error as MoultError {
            guard let need = AppNeed(error, isAlone: true) else { throw error }
            throw MoultError(
                .appExtension, .refused, what: "cannot \(doing)",
                why: "the schema of \(error.sqlite?.path ?? path) needs the \(need.kind) \(need.name), "
                    + "which only the app provides",
                now: "Remove it from the tables that the app writes to, then publish the release again.", cause: error)
        }
    }
}

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
        var replaced = Set(transfers.filter { $0.outcome.shippedLosers > 0 }.map { SQLName($0.rows.layout.name) })
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
        closeStatements()
        try SearchIndexes.rebuild(in: new, dependingOn: changed + orphans.keys.map(\.text))
        try RowSequences.raise(RowSequences.all(in: old), in: new)
        for table in inserted { try requireWholeIndexes(table) }
    }

    /// Closes all statements, because open statements would block a rollback.
    func closeStatements() { transfers = [] }

    /// Checks the indexes of a table, and rebuilds them if a row is missing in one: with the encoding UTF-16, SQLite itself can leave
    /// a row out of an index on an expression such as `lower(x)` and a blob. Throws if that does not help.
    private func requireWholeIndexes(_ table: String) throws {
        do {
            guard try fault(table) != nil else { return }
            try new.run("REINDEX main.\(quoteIdentifier(table))")
            guard let fault = try fault(table) else { return }
            throw MoultError(
                .shippedViolation, .refused, what: "table \(table) is damaged after rows were carried over", why: fault,
                now: "Nothing was changed. Publish the database without the index that SQLite names.")
        } catch  where Connection.needsApp(error) {
            // Only the app has a collation or function of an index.
        }
    }

    private func fault(_ table: String) throws -> String? {
        let found = try new.scalar("PRAGMA main.integrity_check(\(quoteIdentifier(table)))")
        return found == .text("ok") ? nil : found?.textOrEmpty ?? "the check has no result"
    }
}

// MARK: a check before any row exists

extension RowTransfer {
    /// Returns why the statements that carry rows over cannot be prepared; nil if they can, or if the table is missing.
    /// Extensions that only the app has, such as a collation, are not a reason, because they may be available during the update.
    package static func fault(
        of table: String, in connection: Connection, rejects: RejectTable = RejectTable(label: "")
    ) throws -> String? {
        guard let layout = try TableLayout.of(SQLName(table), in: connection) else { return nil }
        do {
            // Rows are carried over without firing triggers, which may need the app's extensions.
            try connection.with(.triggers, false) { try prepare(layout, connection, rejects) }
            return nil
        } catch let error as MoultError {
            if error.code == .selection { return error.why ?? error.what }
            guard let sqlite = error.sqlite, sqlite.resultCode.primary == .error else { throw error }
            if AppNeed(error, isAlone: true) != nil { return nil }
            return "the table has \(layout.columns.count) columns, and SQLite says: \(sqlite.message)"
        }
    }

    private static func prepare(_ layout: TableLayout, _ connection: Connection, _ rejects: RejectTable) throws {
        let transfer = try TableTransfer(
            RowRule(table: layout.name), ColumnMap(layout, layout, renamed: [:]), from: layout, connection,
            into: layout, connection, RejectWriter(rejects, connection))
        _ = try connection.statement(transfer.selectSQL())
    }
}
