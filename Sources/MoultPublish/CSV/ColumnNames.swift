internal import MoultSQLite

/// The columns of a table that is created from the first row of a file.
struct ColumnNames: Equatable {
    let names: [String]
    /// The columns that were renamed because their names were not unique.
    let renamed: [(from: String, to: String)]

    static func == (a: ColumnNames, b: ColumnNames) -> Bool { a.names == b.names }

    /// Creates names like the sqlite3 shell: an empty name becomes `?`, and a name that occurs more than once (ignoring ASCII
    /// case) gets its position as a suffix, padded with zeros until all names are distinct.
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

    /// The column definitions with the line breaks that the shell writes, because they are stored in the schema.
    var definitions: String {
        var text = "(\n"
        for (index, name) in names.enumerated() {
            if index > 0 { text += index % 4 == 0 ? ",\n " : ", " }
            text += "\(quoteIdentifier(name)) TEXT"
        }
        return text + ")"
    }

    /// Returns the name with ASCII case folded, as in SQLite.
    private static func folded(_ name: String) -> [UInt8] {
        name.utf8.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 : $0 }
    }
}
