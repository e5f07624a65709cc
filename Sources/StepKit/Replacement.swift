internal import MoultBasics

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
