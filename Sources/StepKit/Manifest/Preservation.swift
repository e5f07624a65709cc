internal import MoultBasics

/// The rows of a shared database that are carried from one release to another, and the rules for that.
///
/// The installed release selects the rows that belong to the app, because it knows their schema. The target release determines
/// how they are stored. If only one of the two releases lists a table, its entry determines both. So an update can start to
/// preserve a table, and a rollback carries over the rows that either release preserves.
///
/// The older release was published first and cannot be changed to fit rows of the newer one. So no row blocks a rollback: a row
/// that does not fit goes to `moult_rejected`, and renamed columns get their old names back.
///
/// A release may also list the renames of earlier releases, for stores that skip those. A rename that both releases list is
/// therefore older than both, and the rows already have the new column name.
public struct Preservation: Sendable, Equatable {
    /// The rule for the selected rows of one table.
    public struct Rule: Sendable, Equatable {
        /// The table's name in the release that selects the rows.
        public var table: String
        /// SQL conditions, at least one of which a row must meet; nil selects every row.
        public var conditions: [String?]
        /// In a rollback: the conditions of the older release, which count if they are valid in the newer schema.
        public var olderConditions: [String] = []
        /// Whether the conditions were written for a schema other than that of the rows.
        public var isForeign: Bool
        /// How the rows are stored; nil if the target release does not preserve the table.
        public var placement: Database.Preserve?
        /// Further renames that the target release lists. They count only for rows that still have the old column and not the new
        /// one, for instance because they were restored from an older release.
        public var earlierRenames: [String: String] = [:]
        /// In a rollback: the older names of each renamed column, of which the target has at most one.
        public var formerNames: [String: [String]] = [:]

        /// Returns the renames for a target table, by the names in the rows; `hasColumn` tells whether it has a column.
        public func columns(where hasColumn: (_ name: String) -> Bool) -> [String: String] {
            let back = formerNames.compactMapValues { names in names.first(where: hasColumn) }
            return (placement?.columns ?? [:]).filter { hasColumn($0.value) }.merging(back) { $1 }
        }
    }

    /// One rule per table; those for tables of the installed release come first.
    public let rules: [Rule]

    /// Creates the rules between two releases of a database; `installed` is nil if the content is not from a release. `isBack`
    /// means that the target is the older one.
    public init(from installed: Database?, to target: Database, isBack: Bool) {
        let (before, after) = (installed?.preserve ?? [], target.preserve)
        func same(_ one: String, _ other: String) -> Bool { SQLName(one) == SQLName(other) }
        var rules: [Rule] = []
        for entry in before + after where !rules.contains(where: { same($0.table, entry.table) }) {
            let own = before.filter { same($0.table, entry.table) }
            var placement = after.first { same($0.table, entry.table) }
            var formerNames: [String: [String]] = [:]
            if isBack {
                formerNames = Self.formerNames(own.first?.columns ?? [:], older: placement?.columns ?? [:])
                placement = Self.placementBack(own.first, placement)
            } else if installed == nil {
                // The content may be older or newer than a rename, so each one counts only if the columns show it.
                placement?.columns = [:]
            } else if let columns = placement?.columns {
                placement?.columns = Self.renames(columns, without: own.first?.columns)
            }
            let selecting = own.isEmpty ? after.filter { same($0.table, entry.table) } : own
            let listed = after.first { same($0.table, entry.table) }?.columns ?? [:]
            let conditions = selecting.map(\.where)
            // A condition of the newer release replaces an entry of the older one that selects every row.
            let older =
                isBack && !conditions.contains(nil)
                ? after.filter { same($0.table, entry.table) }.compactMap(\.where) : []
            rules.append(
                Rule(
                    table: entry.table, conditions: conditions,
                    olderConditions: older.filter { !conditions.contains($0) }, isForeign: own.isEmpty,
                    placement: placement, earlierRenames: Self.renames(listed, without: placement?.columns),
                    formerNames: formerNames))
        }
        self.rules = rules
    }

    /// Returns how rows are stored in the older release. If it does not preserve the table, the newer one determines how
    /// conflicts are resolved.
    private static func placementBack(_ newer: Database.Preserve?, _ older: Database.Preserve?) -> Database.Preserve? {
        guard var entry = older ?? newer else { return nil }
        entry.onReject = .table
        if entry.onConflict == .fail { entry.onConflict = .keepUser }
        entry.columns = [:]
        return entry
    }

    /// Returns the older names of each column that the newer release has renamed, the most recent name first: a name that the older
    /// release lists as renamed is from before that release.
    private static func formerNames(_ newer: [String: String], older: [String: String]) -> [String: [String]] {
        let earlier = Set(older.keys.map { SQLName($0) })
        return Dictionary(grouping: renames(newer, without: older), by: \.value).mapValues { renames in
            renames.map(\.key).sorted { one, other in
                let (isOne, isOther) = (earlier.contains(SQLName(one)), earlier.contains(SQLName(other)))
                return isOne == isOther ? one < other : isOther
            }
        }
    }

    private static func renames(_ newer: [String: String], without older: [String: String]?) -> [String: String] {
        let known = Dictionary((older ?? [:]).map { (SQLName($0), SQLName($1)) }) { first, _ in first }
        return newer.filter { known[SQLName($0.key)] != SQLName($0.value) }
    }
}
