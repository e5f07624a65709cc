internal import MoultBasics
import MoultRows
internal import MoultSQLite

extension DiffPage {
    /// Returns the sample rows of a table.
    func samples(_ table: TableDiff) -> Markup {
        if table.samples.isEmpty { return "" }
        let groups = RowSample.Kind.allCases.map { kind in
            group(table, kind, table.samples.filter { $0.kind == kind })
        }
        let columns = table.changedColumns.map { "<code>\($0.name)</code> in \($0.rows)" as Markup }
        let list = Markup(columns.enumerated().map { $0 == 0 ? $1 : ", \($1)" })
        let changed: Markup = columns.isEmpty ? "" : "<p class=dim>Changed columns: \(list)</p>\n"
        return """
            <details open>
            <summary>Rows of <code>\(table.name)</code></summary>
            \(changed)\(groups)</details>

            """
    }

    private func group(_ table: TableDiff, _ kind: RowSample.Kind, _ samples: [RowSample]) -> Markup {
        if samples.isEmpty { return "" }
        let columns = shown(table, kind, samples)
        let heads = columns.map { index in
            let isNumber = samples.allSatisfy { $0.values[index].isNumber }
            return "<th class=\"\(style(isKey: index < table.keyColumns, isNumber))\">\(table.columns[index])" as Markup
        }
        let rows = samples.map { sample in
            "<tr>\(columns.map { cell(sample, $0, isKey: $0 < table.keyColumns) })</tr>\n" as Markup
        }
        let count = table.count(of: kind)
        let more: Markup = count == samples.count ? "" : "<span class=dim>, \(samples.count) of them shown</span>"
        return """
            <h4 class=\(kind.rawValue)>\(count) \(kind.rawValue)\(more)</h4>
            <div class=wide><table class=rows>
            <thead><tr>\(heads)</tr></thead>
            <tbody>
            \(rows)</tbody>
            </table></div>

            """
    }

    /// Returns the columns to show: for changed rows, only the key and the columns that differ in at least one of them.
    private func shown(_ table: TableDiff, _ kind: RowSample.Kind, _ samples: [RowSample]) -> [Int] {
        table.columns.indices.filter { index in
            index < table.keyColumns || kind != .changed || samples.contains { $0.old?[index] != $0.new?[index] }
        }
    }

    private func cell(_ sample: RowSample, _ column: Int, isKey: Bool) -> Markup {
        if let old = sample.old?[column], let new = sample.new?[column], old != new {
            return "<td class=both><del>\(value(old))</del><ins>\(value(new))</ins>"
        }
        let value = sample.values[column]
        // Unchanged values are dimmed.
        let dim = sample.kind == .changed && !isKey ? " dim" : ""
        let style = "\(style(isKey: isKey, value.isNumber))\(value.isLong ? " long" : "")\(dim)"
        return "<td class=\"\(style)\">\(self.value(value))"
    }

    private func style(isKey: Bool, _ isNumber: Bool) -> String { "\(isKey ? "key" : "")\(isNumber ? " n" : "")" }

    private func value(_ value: SampleValue) -> Markup {
        switch value {
        case .null: "<i>NULL</i>"
        case .integer(let number): "\(String(number))"
        case .real(let number): "\(String(number))"
        case .text("", bytes: 0): "<i>empty</i>"
        case .text(let text, let bytes):
            text.count <= 160 && text.utf8.count == bytes
                ? "\(text)" : "\(String(text.prefix(159)))… <i>\(ByteCount(bytes).description)</i>"
        case .blob(let start, let bytes):
            "<code>\(hexadecimal(Array(start.prefix(16))))\(bytes > 16 ? "…" : "")</code> <i>\(ByteCount(bytes).description)</i>"
        }
    }
}

extension SampleValue {
    fileprivate var isNumber: Bool {
        switch self {
        case .integer, .real: true
        case .null, .text, .blob: false
        }
    }

    /// Whether the value is so long that its column needs a minimum width.
    fileprivate var isLong: Bool {
        if case .text(_, let bytes) = self { bytes > 40 } else { false }
    }
}
