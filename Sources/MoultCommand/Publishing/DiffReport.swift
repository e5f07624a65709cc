internal import MoultBasics
internal import MoultPublish
internal import MoultRows
internal import MoultSQLite

/// The output of `diff`.
struct DiffReport: Report {
    let diff: ReleaseDiff

    func write(to page: inout Page) {
        page.line("\("\(label(diff.old)) -> \(label(diff.new))", .heading)")
        for note in diff.notes { page.wrapped("note: \(note)", indent: 2) }
        for entry in diff.databases {
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

    private func label(_ side: ReleaseDiff.Side) -> String {
        side.version.map { "\(side.path) (\($0))" } ?? side.path
    }

    private func write(_ database: DatabaseDiff, to page: inout Page) {
        guard database.differs else {
            let how = database.isSameFile ? "the same file, byte for byte" : "no difference"
            return page.line("\("=", .dim) \(database.name, .heading): \(how)")
        }
        page.line("\("~", .changed) \(database.name, .heading)")
        for property in database.properties {
            page.wrapped("\("~", .changed) \(property.name): \(property.old) -> \(property.new)", indent: 2)
        }
        for change in database.schema {
            page.wrapped("\(change.change.sign) \(change.words)", indent: 2)
        }
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
            for sample in samples { page.wrapped("\(kind.sign) \(SampleLine(sample, of: table).text)", indent: 4) }
            let left = table.count(of: kind) - samples.count
            if left > 0, !samples.isEmpty { page.line("    \("and \(left) more \(kind.rawValue)", .dim)") }
        }
    }

    var json: JSON { diff.json }
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
