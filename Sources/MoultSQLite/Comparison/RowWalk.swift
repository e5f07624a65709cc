/// What happened to a row between two databases.
package enum RowDifference: String, Sendable, CaseIterable {
    case added
    case removed
    case changed
}

/// Walks through a table in both databases at the same time, with one row of each in memory.
package struct RowWalk {
    /// Gets each row that was added, removed or changed; only the statements of the sides that have the row are positioned on
    /// it.
    package typealias Handler = (RowDifference, borrowing Statement, borrowing Statement) throws -> Void

    package let match: RowMatch
    /// The root pages of both B-trees; nil unless records with the same bytes are equal rows, and the files contain all rows.
    let roots: (old: Int64, new: Int64)?
    /// Called regularly with the number of rows read since the last call; throws to stop.
    let tick: (Int) throws -> Void

    package init(match: RowMatch, roots: (old: Int64, new: Int64)?, tick: @escaping (Int) throws -> Void = { _ in }) {
        (self.match, self.roots, self.tick) = (match, roots, tick)
    }

    private static let ticks = 4096

    /// Thrown if so many rows differ that it is faster to let SQLite read them all.
    private struct NotWorthIt: Error {}

    /// The number of rows on each side, and of records that differ.
    package struct Counts {
        package var before = 0
        package var after = 0
        var differences = 0
        fileprivate var ticked = 0

        package init() {}
    }

    /// Walks over the raw records if possible, otherwise over the rows that SQLite returns. The body may be restarted
    /// from the beginning.
    package func walk<Result>(
        _ old: Connection, _ new: Connection, _ body: (_ differences: (Handler) throws -> Counts) throws -> Result
    ) throws -> Result {
        if let roots {
            do {
                return try body { handle in try byRecords(old, new, roots, handle) }
            } catch  where error is RecordCursor.Unreadable || error is NotWorthIt {
                // Below, SQLite reads everything, and reports any damage.
            }
        }
        return try body { handle in try byStatements(old, new, handle) }
    }

    private func byStatements(_ old: Connection, _ new: Connection, _ handle: Handler) throws -> Counts {
        var counts = Counts()
        try old.withStatement(match.oldSQL) { old in
            try new.withStatement(match.newSQL) { new in try merge(old, new, &counts, handle) }
        }
        try tick(counts.before + counts.after - counts.ticked)
        return counts
    }

    private func merge(
        _ old: borrowing Statement, _ new: borrowing Statement, _ counts: inout Counts, _ handle: Handler
    ) throws {
        let keyColumns = match.orderColumns
        // The values of two keys may differ although they are in the same place, such as 1 and 1.0.
        let rest = (match.isByRowID ? keyColumns : 0)..<match.shown.upperBound
        var (hasOld, hasNew) = (try old.step(), try new.step())
        while hasOld || hasNew {
            let order = !hasOld ? 1 : !hasNew ? -1 : try old.order(against: new, by: keyColumns)
            if order != 0 {
                try handle(order < 0 ? .removed : .added, old, new)
            } else if try old.firstDifference(to: new, in: rest) != nil {
                try handle(.changed, old, new)
            }
            if order <= 0 { hasOld = try old.step() }
            if order >= 0 { hasNew = try new.step() }
            try count(order, &counts)
        }
    }

    private func byRecords(
        _ old: Connection, _ new: Connection, _ roots: (old: Int64, new: Int64), _ handle: Handler
    ) throws -> Counts {
        var counts = Counts()
        var oldRows = try RecordCursor(old, rootPage: roots.old)
        var newRows = try RecordCursor(new, rootPage: roots.new)
        try old.withStatement(match.oldLookup) { old in
            try new.withStatement(match.newLookup) { new in
                var (hasOld, hasNew) = (try oldRows.next(), try newRows.next())
                while hasOld || hasNew {
                    let order =
                        !hasOld
                        ? 1
                        : !hasNew
                            ? -1
                            : (oldRows.rowID > newRows.rowID ? 1 : 0)
                                - (oldRows.rowID < newRows.rowID ? 1 : 0)
                    if order != 0 || !oldRows.isSame(as: newRows) {
                        try compareBySQLite(order, oldRows.rowID, newRows.rowID, old, new, &counts, handle)
                    }
                    if order <= 0 { hasOld = try oldRows.next() }
                    if order >= 0 { hasNew = try newRows.next() }
                    try count(order, &counts)
                }
            }
        }
        try tick(counts.before + counts.after - counts.ticked)
        return counts
    }

    /// Lets SQLite compare rows whose bytes differ, because their values may still be equal.
    private func compareBySQLite(
        _ order: Int, _ oldID: Int64, _ newID: Int64, _ old: borrowing Statement, _ new: borrowing Statement,
        _ counts: inout Counts, _ handle: Handler
    ) throws {
        // A lookup takes longer than a step of a walk, so too many lookups are not worthwhile.
        counts.differences += 1
        if counts.differences > 10_000, counts.differences > (counts.before + counts.after) / 6 {
            throw NotWorthIt()
        }
        guard try (order > 0 || old.find(oldID)) && (order < 0 || new.find(newID)) else { throw NotWorthIt() }
        if order != 0 {
            try handle(order < 0 ? .removed : .added, old, new)
        } else if try old.firstDifference(to: new, in: match.orderColumns..<match.shown.upperBound) != nil {
            try handle(.changed, old, new)
        }
    }

    private func count(_ order: Int, _ counts: inout Counts) throws {
        if order <= 0 { counts.before += 1 }
        if order >= 0 { counts.after += 1 }
        let rows = counts.before + counts.after
        guard rows - counts.ticked >= Self.ticks else { return }
        try tick(rows - counts.ticked)
        counts.ticked = rows
    }
}

extension Statement {
    /// Runs the lookup for this position; returns false if no row is there.
    package borrowing func find(_ place: Int64) throws -> Bool {
        reset()
        try bind(place, at: 1)
        return try step()
    }
}
