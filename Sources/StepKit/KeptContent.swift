public import MoultBasics

/// Why the old content of a writable database was put into quarantine.
public enum KeptReason: String, Sendable, CaseIterable {
    /// An update replaced the content.
    case replaced
    /// A rollback replaced the content.
    case rolledBack = "rolled-back"
    /// A migration changed or dropped values.
    case migrated
    /// The operator reset the database.
    case reset
    /// The operator let a release take over the file.
    case takenOver = "taken-over"
    /// A file that moult did not create was at the path of the database.
    case foreign
    /// A cache could not be opened, or did not match the release.
    case unfitCache = "unfit-cache"
    /// An undo replaced the content.
    case undone
    /// The operator restored other content from quarantine.
    case restored
    /// A program wrote to a read-only file.
    case changed
}

/// What happens to the rows of one table when the content of a database is replaced or migrated.
public struct RowFate: Sendable, Equatable {
    /// The table.
    public var table: String
    /// The database of the table, if the counts are for several databases.
    public var database: String?
    /// Rows that are carried over into the new content.
    public var carried: Int
    /// Rows that are written to `moult_rejected`.
    public var rejected: Int
    /// Rows that are complete only in the copy of the old content in quarantine.
    public var kept: Int
    /// Rows counted in `kept` that are also in `carried`: the new table lacks columns in which they have values.
    public var incomplete: Int
    /// Shipped rows that carried rows have replaced; they are in `moult_rejected`.
    public var displaced: Int

    /// Creates the counts of one table.
    public init(
        table: String, carried: Int = 0, rejected: Int = 0, kept: Int = 0, incomplete: Int = 0, displaced: Int = 0
    ) {
        (self.table, self.carried, self.rejected) = (table, carried, rejected)
        (self.kept, self.incomplete, self.displaced) = (kept, incomplete, displaced)
    }

    /// Returns the list in the field `rows`; nil if the field is missing.
    static func list(_ fields: Fields) throws -> [RowFate]? {
        try fields.json("rows") == nil ? nil : fields.objects("rows").map { try RowFate($0) }
    }

    /// Whether no row is affected.
    public var isEmpty: Bool { carried == 0 && rejected == 0 && kept == 0 }

    /// Returns the counts as text: `3 rows of item carried over, 1 to moult_rejected`; the old content is kept in `place`.
    public func text(keptIn place: String) -> String { text(carrying: "carried over", place) }

    /// Returns the counts as text for a plan. Whether rows fit is known only when the release is applied.
    public func plannedText(keptIn place: String) -> String { text(carrying: "to carry over", place) }

    private func text(carrying: String, _ place: String) -> String {
        let parts = [
            carried > 0 ? "\(counted(carried, "row")) of \(table) \(carrying)" : nil,
            rejected > 0 ? "\(counted(rejected, "row")) of \(table) to \(ReleaseMarker.rejects)" : nil,
            displaced > 0
                ? "\(counted(displaced, "shipped row")) of \(table) displaced, to \(ReleaseMarker.rejects)" : nil,
            incomplete > 0
                ? "\(counted(incomplete, "row")) of \(table) without the values of columns that the new table lacks, kept whole in \(place)"
                : nil,
            kept > incomplete
                ? "\(counted(kept - incomplete, "row")) of \(table) not carried over, kept in \(place)" : nil,
        ]
        return parts.compactMap(\.self).joined(separator: ", ")
    }

    /// The counts as text for migrations, which carry nothing over: `values of 3 rows of note change or are dropped`, with a
    /// note that quarantine keeps the old database.
    public var migratedText: String {
        "values of \(counted(kept, "row")) of \(table) change or are dropped (the old database is kept in quarantine)"
    }

    /// The counts as JSON, for plans and results.
    public var json: JSON {
        .record([
            "database": database, "table": table, "carried": carried, "rejected": rejected, "kept": kept,
            "incomplete": incomplete == 0 ? nil : incomplete, "displaced": displaced == 0 ? nil : displaced,
        ])
    }

    /// Reads counts from the history; returns nil if the name of the table is missing.
    package init?(json: JSON) {
        guard let table = json["table"]?.string else { return nil }
        func count(_ name: String) -> Int { Int(json[name]?.integer ?? 0) }
        self.init(
            table: table, carried: count("carried"), rejected: count("rejected"), kept: count("kept"),
            incomplete: count("incomplete"), displaced: count("displaced"))
        database = json["database"]?.string
    }

    /// Reads counts from a saved plan.
    public init(_ fields: Fields) throws {
        self.init(
            table: try fields.string("table"), carried: try fields.optionalCount("carried") ?? 0,
            rejected: try fields.optionalCount("rejected") ?? 0, kept: try fields.optionalCount("kept") ?? 0,
            incomplete: try fields.optionalCount("incomplete") ?? 0,
            displaced: try fields.optionalCount("displaced") ?? 0)
    }
}

/// Row counts by table, in the order in which the tables were first counted.
public struct RowFates: Sendable {
    /// The counts of each table.
    public private(set) var all: [RowFate] = []

    /// Creates an empty list.
    public init() {}

    /// Changes the counts of a table; names are compared as in SQLite.
    public mutating func add(_ table: String, _ change: (inout RowFate) -> Void) {
        let index = all.firstIndex { SQLName($0.table) == SQLName(table) } ?? all.endIndex
        if index == all.endIndex { all.append(RowFate(table: table)) }
        change(&all[index])
    }

    /// Whether some rows are complete only in the old content.
    public var keepsAny: Bool { all.contains { $0.kept > 0 } }
}

/// The content that replaces that of a writable database, in place.
public struct Replacement: Sendable, Equatable {
    /// The path of the database.
    public var path: String
    /// The release's file with the content.
    public var member: String
    /// The size of that file in bytes.
    public var size: Int
    /// The reason for which old content is kept.
    public var reason: KeptReason
    /// What happens to the rows of the old content; nil if only `apply` or a deep plan finds out.
    public var rows: [RowFate]?

    /// Creates a description of new content.
    public init(path: String, member: String, size: Int, reason: KeptReason, rows: [RowFate]? = []) {
        (self.path, self.member, self.size, self.reason, self.rows) = (path, member, size, reason, rows)
    }

    /// The text in a plan.
    var text: String {
        (["\(path), \(ByteCount(size)), in place"] + (rows ?? []).map { $0.plannedText(keptIn: "quarantine") }).joined(
            separator: "; ")
    }

    var json: JSON {
        .record([
            "do": "replace", "path": path, "member": member, "size": size, "reason": reason.rawValue,
            "rows": rows.map { $0.map(\.json) },
        ])
    }

    init(_ fields: Fields) throws {
        self.init(
            path: try fields.string("path"), member: try fields.string("member"), size: try fields.count("size"),
            reason: try fields.word("reason", KeptReason.self) ?? .replaced,
            rows: try RowFate.list(fields))
    }
}
