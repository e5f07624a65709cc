internal import MoultBasics

/// The rows of a shared database that are carried from one release to another, and the rules for that.
///
/// The installed release selects the rows that belong to the app, because it knows their schema. The target release
/// decides how they are stored. If only one of them names a table, its entry decides both. So an update can start to
/// preserve a table, and a rollback carries over the rows that either release preserves.
public struct Preservation: Sendable, Equatable {
    /// The rule for the selected rows of one table.
    public struct Rule: Sendable, Equatable {
        /// The table's name in the release that selects the rows.
        public var table: String
        /// SQL conditions, at least one of which a row must meet; nil selects every row.
        public var conditions: [String?]
        /// Whether the conditions were written for a different schema than that of the rows.
        public var isForeign: Bool
        /// How the rows are stored; nil if the target release does not preserve the table.
        public var placement: Database.Preserve?
    }

    /// One rule per table, in the order of the releases.
    public let rules: [Rule]

    /// The rules between two releases of a database; `installed` is nil if the content is not from a release.
    public init(from installed: Database?, to target: Database, isRollback: Bool) {
        let (before, after) = (installed?.preserve ?? [], target.preserve)
        func same(_ one: String, _ other: String) -> Bool { SQLName(one) == SQLName(other) }
        var rules: [Rule] = []
        for entry in before + after where !rules.contains(where: { same($0.table, entry.table) }) {
            let own = before.filter { same($0.table, entry.table) }
            let placement = after.first { same($0.table, entry.table) }
            let selecting = own.isEmpty ? after.filter { same($0.table, entry.table) } : own
            rules.append(
                Rule(
                    table: entry.table, conditions: selecting.map(\.where), isForeign: own.isEmpty,
                    // The older release may not know the table; then its rows are left behind.
                    placement: placement ?? (isRollback ? Self.rollbackPlacement(own) : nil)))
        }
        self.rules = rules
    }

    /// The newer release decides on conflicts; columns keep their names.
    private static func rollbackPlacement(_ entries: [Database.Preserve]) -> Database.Preserve? {
        guard var entry = entries.first else { return nil }
        // Rows that no longer fit must not block a rollback, so they go to `moult_rejected`.
        (entry.onReject, entry.columns) = (.table, [:])
        return entry
    }
}
