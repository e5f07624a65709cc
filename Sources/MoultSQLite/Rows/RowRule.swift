/// The rows of a table that are carried from an old database to a new one, and the action for conflicts.
package struct RowRule: Sendable {
    /// The action if the new content has another row with the same key.
    package enum Conflict: Sendable {
        /// The carried row replaces the new content's row, which is written to the reject table.
        case keepUser
        /// The new content's row stays, and the carried row is written to the reject table.
        case keepNew
        /// The transfer fails.
        case fail
    }

    /// The action for a row that the new schema does not accept.
    package enum Reject: Sendable {
        /// The transfer fails.
        case block
        /// The row is written to the reject table.
        case record
    }

    package var table: String
    /// SQL expressions, of which at least one must hold for a row; nil holds for every row.
    package var conditions: [String?]
    /// The new name of each renamed column, by its old name.
    package var columns: [String: String]
    package var onConflict: Conflict
    package var onReject: Reject

    package init(
        table: String, conditions: [String?] = [nil], columns: [String: String] = [:],
        onConflict: Conflict = .keepUser, onReject: Reject = .block
    ) {
        (self.table, self.conditions, self.columns) = (table, conditions, columns)
        (self.onConflict, self.onReject) = (onConflict, onReject)
    }
}

/// What became of the selected rows of one table. `selected` is always
/// `carried + rejected + unplaced + shipped`.
package struct TableOutcome: Equatable, Sendable {
    package var table: String
    /// Rows of the old database that the rule selects.
    package var selected = 0
    /// Rows whose values are in the new table exactly, including rows that were there already.
    package var carried = 0
    /// Rows that were written to the reject table.
    package var rejected = 0
    /// Rejected rows that the reject table had already, so that they were not written again.
    package var recorded = 0
    /// Rows that were left out because a release shipped them.
    package var shipped = 0
    /// Rows without a place because the new database has no such table, or one without a column in common. The caller
    /// must keep the old content.
    package var unplaced = 0
    /// Rows of the new content that were replaced by carried rows.
    package var shippedLosers = 0
    /// Carried rows that also have values, other than NULL and the default, in columns that the new table lacks. The
    /// caller must keep the old content.
    package var incomplete = 0

    package init(
        table: String, selected: Int = 0, carried: Int = 0, rejected: Int = 0, unplaced: Int = 0,
        shippedLosers: Int = 0, incomplete: Int = 0
    ) {
        (self.table, self.selected, self.carried, self.rejected) = (table, selected, carried, rejected)
        (self.unplaced, self.shippedLosers, self.incomplete) = (unplaced, shippedLosers, incomplete)
    }
}
