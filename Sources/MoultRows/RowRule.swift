import MoultBasics
import MoultSQLite

/// The rows of a table that are carried over from an old database to a new one, and the actions for conflicts and for rows that
/// do not fit.
package struct RowRule: Sendable {
    /// The action if the new content has another row with the same key.
    package enum Conflict: Sendable {
        /// Replace the new content's row, and write it to the reject table.
        case keepUser
        /// Keep the new content's row, and write the carried row to the reject table.
        case keepNew
        case fail
    }

    /// The action for a row that the new schema does not accept.
    package enum Reject: Sendable {
        case block
        /// Write the row to the reject table.
        case record
    }

    package var table: String
    /// SQL expressions, of which at least one must be true for a row; nil selects every row.
    package var conditions: [String?]
    /// The new name of each renamed column, by its old name.
    package var columns: [String: String]
    /// Further renames, which count only if the table still has the old column and not the new one.
    package var earlierRenames: [String: String]
    package var onConflict: Conflict
    package var onReject: Reject
    /// The rowids of the only rows to carry over; nil for all that the conditions select.
    var rowIDs: [Int64]?

    package init(
        table: String, conditions: [String?] = [nil], columns: [String: String] = [:],
        earlierRenames: [String: String] = [:],
        onConflict: Conflict = .keepUser, onReject: Reject = .block
    ) {
        (self.table, self.conditions, self.columns) = (table, conditions, columns)
        self.earlierRenames = earlierRenames
        (self.onConflict, self.onReject) = (onConflict, onReject)
    }

    /// Returns the new name of each column that is renamed between the two tables, by its old name.
    func renames(from old: TableLayout, to new: TableLayout) -> [String: String] {
        let taken = Set(columns.values.map { SQLName($0) })
        return columns.merging(
            earlierRenames.filter {
                old.place(of: $0.key) != nil && old.place(of: $0.value) == nil && new.place(of: $0.value) != nil
                    && new.place(of: $0.key) == nil && !taken.contains(SQLName($0.value))
            }
        ) { own, _ in own }
    }
}

/// The results for the selected rows of one table, as numbers of rows. `selected` is always `carried + rejected + unplaced +
/// shipped`.
package struct TableOutcome: Equatable, Sendable {
    package var table: String
    /// Rows of the old database selected by the rule.
    package var selected = 0
    /// Rows whose exact values are in the new table, including rows that were there already.
    package var carried = 0
    package var rejected = 0
    /// Rejected rows that already were in the reject table, and were not written again.
    package var recorded = 0
    /// Rows left out because a release shipped them.
    package var shipped = 0
    /// Rows that cannot be carried over because the new database lacks the table, or the tables have no column in common. The
    /// caller must keep the old content.
    package var unplaced = 0
    /// Rows of the new content replaced by carried rows.
    package var shippedLosers = 0
    /// Carried rows that also have values, other than NULL and the default, in columns that the new table lacks. The caller
    /// must keep the old content.
    package var incomplete = 0
}
