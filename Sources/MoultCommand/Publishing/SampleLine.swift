internal import MoultBasics
internal import MoultPublish

/// A table row on one line: `id 5: price 10 -> 11`.
struct SampleLine {
    private let sample: RowSample
    private let table: TableDiff

    init(_ sample: RowSample, of table: TableDiff) { (self.sample, self.table) = (sample, table) }

    var text: StyledText {
        let named = zip(table.columns, sample.values).map { (name: $0, value: $1.short) }
        let key = named.prefix(table.keyColumns).map { "\($0.name) \($0.value)" }.joined(separator: ", ")
        let rest: [String]
        if let old = sample.old, let new = sample.new {
            rest = table.columns.indices.filter { old[$0] != new[$0] }.map {
                "\(table.columns[$0]) \(old[$0].short) -> \(new[$0].short)"
            }
        } else {
            rest = named.dropFirst(table.keyColumns).map { "\($0.name) \($0.value)" }
        }
        let all = rest.joined(separator: ", ")
        return key.isEmpty ? StyledText(all) : "\(key, .heading)\(all.isEmpty ? "" : ": \(all)")"
    }
}

extension SampleValue {
    /// The value in SQL notation; long values are truncated.
    var short: String {
        switch self {
        case .null: "NULL"
        case .integer(let number): "\(number)"
        case .real(let number): "\(number)"
        case .text(let text, let bytes):
            text.count <= 60 && text.utf8.count == bytes
                ? quoted(text) : "\(quoted("\(text.prefix(59))…")) (\(bytes) bytes)"
        case .blob(let start, let bytes):
            bytes <= 16 ? "x'\(hexadecimal(start))'" : "x'\(hexadecimal(Array(start.prefix(15))))…' (\(bytes) bytes)"
        }
    }

    private func quoted(_ text: String) -> String { "'\(text.replacing(scalar: "'", with: "''"))'" }
}
