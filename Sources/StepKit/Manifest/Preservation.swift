internal import MoultBasics

/// The rows of a shared database that are carried from one release to another, and the rules for that.
///
/// The installed release says which rows belong to the app, because it knows the schema that they are in. The target
/// release says where they go. A table that only one of the two names follows that one: so an update may begin to
/// preserve a table, and a rollback carries what either release preserves.
public struct Preservation: Sendable, Equatable {
    /// The action for the selected rows of one table.
    public struct Rule: Sendable, Equatable {
        /// The table, as the release that selects the rows calls it.
        public var table: String
        /// The conditions in SQL of which a row must meet one; nil selects every row.
        public var conditions: [String?]
        /// Whether the conditions were written for another schema than the one that the rows are in.
        public var isForeign: Bool
        /// Where the rows go; nil if the target release does not preserve the table.
        public var placement: Database.Preserve?
    }

    /// One rule for each table, in the order in which the releases name them.
    public let rules: [Rule]

    /// The rules between two releases of a database; `installed` is nil if no release made the content.
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
                    // The older release need not know the table; then its rows stay behind.
                    placement: placement ?? (isRollback ? Self.back(own) : nil)))
        }
        self.rules = rules
    }

    /// The newer release decides on conflicts; columns keep their names.
    private static func back(_ entries: [Database.Preserve]) -> Database.Preserve? {
        guard var entry = entries.first else { return nil }
        // What no longer fits must not keep an operator from going back: it goes to the reject table.
        (entry.onReject, entry.columns) = (.table, [:])
        return entry
    }
}
