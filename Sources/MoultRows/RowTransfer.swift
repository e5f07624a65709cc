import MoultBasics
package import MoultSQLite

/// Carries rows over one to one, byte for byte, from an old database to a new one. Used on one thread.
///
/// Each selected row ends up in exactly one place: a row of the new table with the same storage classes and bytes, or a record
/// in the reject table, or it is counted as `unplaced`. Triggers do not fire. Foreign keys are checked at the end, full-text
/// indexes are rebuilt, and AUTOINCREMENT counters never decrease.
///
/// In a table without INTEGER PRIMARY KEY, a carried row keeps its implicit rowid if that is free, and gets a new one
/// otherwise. If no key identifies a carried row, because the table has none or the keys have a NULL, and the row equals a row
/// of the new content, it is matched with that row instead of being inserted.
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
    /// has changed.
    ///
    /// Returns the outcomes in the order of the rules, one for each table that the old database has, then those of tables
    /// without a rule from which rows were removed because of their foreign keys.
    package func run(from old: Connection, to new: Connection) throws -> [TableOutcome] {
        guard try new.isInTransaction else {
            throw MoultError(
                .databaseRequest, what: "cannot carry rows over to \(new.path)", why: "no transaction has begun")
        }
        try checkRules()
        let read = {
            // Without this, SQLite would treat a misspelled column in double quotes as text.
            try old.with(.doubleQuotedStringsInDML, false) {
                try old.namingAppExtensions(doing) {
                    // A transfer to the app's database has no condition, so substitutes for missing collations do not change
                    // what it selects.
                    try isLive ? old.readingWithStandIns { try carry(old, new) } : carry(old, new)
                }
            }
        }
        // All passes must see the same rows.
        return try old.reading(read)
    }

    private var doing: String { "carry over the rows of \(rules.map(\.table).joined(separator: ", "))" }

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
            pass.close()
            try new.execute("ROLLBACK TO moult_rows")
        }
    }
}
