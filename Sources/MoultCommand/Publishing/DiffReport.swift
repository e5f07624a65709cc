internal import MoultBasics
internal import MoultPublish
internal import MoultRows
internal import MoultSQLite

/// The output of `diff`.
extension ReleaseDiff: Report {
    func write(to page: inout Page) {
        page.line("\("\(label(old)) -> \(label(new))", .heading)")
        for note in notes { page.wrapped("note: \(note)", indent: 2) }
        for entry in databases {
            page.line()
            switch entry {
            case .compared(let database): write(database, to: &page)
            case .added(let name): page.line("\("+", .added) \(name, .heading): only in the new version")
            case .removed(let name): page.line("\("-", .removed) \(name, .heading): only in the old version")
            case .kept(let name):
                page.line("\("=", .dim) \(name, .heading): not compared: the store keeps its own file")
            case .unknown(let name, let why): page.line("\("?", .warning) \(name, .heading): not compared, \(why)")
            }
        }
    }

    private func label(_ side: ReleaseDiff.Side) -> String { side.version.map { "\(side.path) (\($0))" } ?? side.path }

    private func write(_ database: DatabaseDiff, to page: inout Page) {
        guard database.differs else {
            let how = database.isSameFile ? "the same file, byte for byte" : "no difference"
            return page.line("\("=", .dim) \(database.name, .heading): \(how)")
        }
        page.line("\("~", .changed) \(database.name, .heading)")
        for property in database.properties {
            page.wrapped("\("~", .changed) \(property.name): \(property.old) -> \(property.new)", indent: 2)
        }
        for change in database.schema { page.wrapped("\(change.change.sign) \(change.words)", indent: 2) }
        let different = database.tables.filter(\.needsOwnLine)
        if !different.isEmpty { page.table(table(different)) }
        let same = database.tables.count - different.count
        if same > 0 {
            let others = different.isEmpty ? "" : "other "
            page.line("  \(counted(same, "\(others)table")) without changed rows")
        }
        for table in different where !table.samples.isEmpty { write(samplesOf: table, to: &page) }
    }

    private func table(_ tables: [TableDiff]) -> Table {
        var lines = Table(.left, .right, .right, .right, .right, .right, .left, indent: 2)
        lines.header("table", "rows", "now", "added", "removed", "changed", "matched by")
        for table in tables {
            func number(_ count: Int, _ style: Style) -> StyledText {
                count == 0 ? StyledText("-", .dim) : StyledText("\(count)", style)
            }
            lines.row(
                "\(table.name)", "\(table.rowsBefore)", "\(table.rowsAfter)", number(table.added, .added),
                number(table.removed, .removed), number(table.changed, .changed), "\(table.method.words)")
        }
        return lines
    }

    private func write(samplesOf table: TableDiff, to page: inout Page) {
        page.line()
        page.line("  \(table.name, .heading)")
        for kind in RowSample.Kind.allCases {
            let samples = table.samples.filter { $0.kind == kind }
            for sample in samples { page.wrapped("\(kind.sign) \(sample.line(of: table))", indent: 4) }
            let left = table.count(of: kind) - samples.count
            if left > 0, !samples.isEmpty { page.line("    \("and \(left) more \(kind.rawValue)", .dim)") }
        }
    }
}

extension ReleaseDiff {
    /// Writes one line per database, for a plan.
    func writeSummary(to page: inout Page) {
        for entry in databases {
            let (name, words) = entry.summary
            page.wrapped("\(name, .heading): \(words)", indent: 2)
        }
        for note in notes { page.wrapped("note: \(note)", indent: 2) }
    }
}

extension ReleaseDiff.Entry {
    fileprivate var summary: (name: String, words: String) {
        switch self {
        case .compared(let database): (database.name, database.summary)
        case .added(let name): (name, "new")
        case .removed(let name): (name, "taken out of service")
        case .kept(let name): (name, "not compared: the store keeps its own file")
        case .unknown(let name, let why): (name, "not compared: \(why)")
        }
    }
}

extension DatabaseDiff {
    fileprivate var summary: String {
        guard differs else { return isSameFile ? "the same file" : "no difference" }
        var parts: [String] = []
        for (count, word) in [(\TableDiff.added, "added"), (\.removed, "removed"), (\.changed, "changed")] {
            let rows = tables.reduce(0) { $0 + $1[keyPath: count] }
            if rows > 0 { parts.append("\(counted(rows, "row")) \(word)") }
        }
        if !schema.isEmpty { parts.append(counted(schema.count, "schema change")) }
        parts += properties.map { "\($0.name) \($0.old) -> \($0.new)" }
        let unread = tables.count { $0.needsOwnLine && !$0.differs }
        if unread > 0 { parts.append("\(counted(unread, "table")) not read") }
        return parts.joined(separator: ", ")
    }
}

extension RowDifference {
    var sign: StyledText {
        switch self {
        case .added: StyledText("+", .added)
        case .removed: StyledText("-", .removed)
        case .changed: StyledText("~", .changed)
        }
    }
}

extension RowSample {
    /// The row on one line: `id 5: price 10 -> 11`.
    func line(of table: TableDiff) -> StyledText {
        let named = zip(table.columns, values).map { (name: $0, value: $1.short) }
        let key = named.prefix(table.keyColumns).map { "\($0.name) \($0.value)" }.joined(separator: ", ")
        let rest: [String]
        if let old, let new {
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
