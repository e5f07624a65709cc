/// The columns of a table that is made from a file's first row.
struct ColumnNames: Equatable {
    /// Distinct names, in order.
    let names: [String]
    /// The columns that were renamed because their names were not unique.
    let renamed: [(from: String, to: String)]

    static func == (a: ColumnNames, b: ColumnNames) -> Bool { a.names == b.names }

    /// Names as the sqlite3 shell makes them: `?` for an empty one; one that occurs more than once (ASCII letters of
    /// both cases are the same) gets its position, with as many zeros before it as make all names distinct.
    init(_ header: [String]) {
        let plain = header.map { $0.isEmpty ? "?" : $0 }
        var uses: [[UInt8]: Int] = [:]
        for name in plain { uses[Self.folded(name), default: 0] += 1 }
        let isRepeated = plain.map { (uses[Self.folded($0)] ?? 0) > 1 }
        var zeros = ""
        var names = plain
        while true {
            names = plain.indices.map { isRepeated[$0] ? "\(plain[$0])_\(zeros)\($0 + 1)" : plain[$0] }
            if Set(names.map(Self.folded)).count == names.count { break }
            zeros += "0"
        }
        self.names = names
        renamed = plain.indices.filter { isRepeated[$0] }.map { (plain[$0], names[$0]) }
    }

    /// The column definitions with the line breaks that the shell writes, because they stay in the schema.
    var definitions: String {
        var text = "(\n"
        for (index, name) in names.enumerated() {
            if index > 0 { text += index % 4 == 0 ? ",\n " : ", " }
            text += "\"\(name.replacing("\"", with: "\"\""))\" TEXT"
        }
        return text + ")"
    }

    /// The name without the difference that SQLite does not see.
    private static func folded(_ name: String) -> [UInt8] {
        name.utf8.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 : $0 }
    }
}
