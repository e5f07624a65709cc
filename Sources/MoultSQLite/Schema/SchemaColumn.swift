/// A row of `PRAGMA table_xinfo`.
struct SchemaColumn {
    var name = ""
    private var type = ""
    private var isNotNull = false
    private var defaultValue: String?
    private var primaryKeyPlace: Int64 = 0
    /// 2: a virtual generated column; 3: a stored generated column.
    private var hidden: Int64 = 0

    init(_ row: [Value]) {
        if case .text(let name) = row[1] { self.name = name }
        if case .text(let type) = row[2] { self.type = type }
        isNotNull = row[3] != .integer(0)
        if case .text(let value) = row[4] { defaultValue = value }
        if case .integer(let place) = row[5] { primaryKeyPlace = place }
        if case .integer(let hidden) = row[6] { self.hidden = hidden }
    }

    /// Returns all facts about the column except its name, on one line.
    func facts(
        _ metadata: (collation: String, isAutoincrement: Bool), _ generated: String?, _ normalizer: SQLNormalizer
    ) -> String {
        var facts = [type.isEmpty ? "any type" : Self.spelling(of: type)]
        if isNotNull { facts.append("not null") }
        if primaryKeyPlace > 0 { facts.append("primary key \(primaryKeyPlace)") }
        if metadata.isAutoincrement { facts.append("autoincrement") }
        if metadata.collation != "binary" { facts.append("collate \(metadata.collation)") }
        if let defaultValue { facts.append("default \(normalizer.normalize(defaultValue))") }
        if hidden >= 2 { facts.append("\(hidden == 2 ? "virtual" : "stored") as \(generated ?? "")") }
        return facts.joined(separator: " ")
    }

    /// Returns the type in a normalized spelling: `varchar ( 10 )` and `VARCHAR(10)` are the same type.
    private static func spelling(of type: String) -> String {
        sqlTokens(type).map(\.text).joined(separator: " ").uppercased()
    }
}
