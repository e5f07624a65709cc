internal import MoultBasics
internal import MoultFiles
import MoultRows
internal import MoultSQLite

/// A comparison as one HTML page.
package struct DiffPage {
    let diff: ReleaseDiff

    package init(_ diff: ReleaseDiff) { self.diff = diff }

    package var html: String {
        let databases = diff.databases.map(section)
        let notes = diff.notes.map { "<p class=note>\($0)</p>\n" as Markup }
        return WholePage(
            title: "\(label(diff.old)) → \(label(diff.new))",
            header: """
                <h1><span class=was>\(label(diff.old))</span> <span class=to>→</span> \(label(diff.new))</h1>
                <p class=paths>\(side(diff.old)) <span class=to>→</span> \(side(diff.new))</p>

                """, main: "\(tiles)\(notes)\(databases)"
        ).html
    }

    /// Returns the label of a side: its version if known, because that says more than a file name.
    private func label(_ side: ReleaseDiff.Side) -> String { side.version ?? Files.name(of: side.path) }

    private func side(_ side: ReleaseDiff.Side) -> Markup { "\(side.kind.rawValue) <code>\(side.path)</code>" }

    /// The most important counts, in large type.
    private var tiles: Markup {
        let databases = diff.databases.compactMap(\.compared)
        let tables = databases.flatMap(\.tables)
        func rows(_ count: KeyPath<TableDiff, Int>) -> Int { tables.reduce(0) { $0 + $1[keyPath: count] } }
        func tile(_ style: String, _ sign: String, _ number: Int, _ what: String) -> Markup {
            "<li class=\"\(number == 0 ? "none" : style)\"><b>\(number == 0 ? "" : sign)\(number)</b> \(what)</li>\n"
        }
        let schema = databases.reduce(0) { $0 + $1.schema.count + $1.properties.count }
        return """
            <ul class=tiles>
            \(tile("added", "+", rows(\.added), "rows added"))\(tile("removed", "−", rows(\.removed), "rows removed"))\
            \(tile("changed", "~", rows(\.changed), "rows changed"))\
            \(tile("schema", "", schema, schema == 1 ? "schema change" : "schema changes"))</ul>

            """
    }

    private func section(_ entry: ReleaseDiff.Entry) -> Markup {
        switch entry {
        case .compared(let database): section(database)
        case .added(let name): lone(name, "added", "only in the new version")
        case .removed(let name): lone(name, "removed", "only in the old version")
        case .kept(let name): lone(name, "same", "not compared: the store keeps its own file")
        case .unknown(let name, let why): lone(name, "changed", "not compared: \(why)")
        }
    }

    private func lone(_ name: String, _ style: String, _ words: String) -> Markup {
        "<section>\n<h2>\(name) <span class=\"badge \(style)\">\(words)</span></h2>\n</section>\n"
    }

    func section(_ database: DatabaseDiff) -> Markup {
        let (style, words) =
            database.differs
            ? ("changed", "changed")
            : ("same", database.isSameFile ? "the same file, byte for byte" : "different files with the same content")
        let pages: Markup = database.pages.map(map) ?? ""
        return """
            <section>
            <h2>\(database.name) <span class="badge \(style)">\(words)</span></h2>
            \(schema(database))\(tables(database.tables))\(pages)\(database.tables.map(samples))</section>

            """
    }

    /// Returns the changes other than rows, one per line.
    private func schema(_ database: DatabaseDiff) -> Markup {
        let properties = database.properties.map { property in
            "<li class=changed><code>\(property.name)</code> \(exchange(property.old, property.new))</li>\n" as Markup
        }
        let changes = database.schema.map { change in
            let table = change.table.map { "<span class=dim>of table</span> <code>\($0)</code> " as Markup } ?? ""
            let name: Markup = change.name.isEmpty ? "" : "<code>\(change.name)</code> "
            return """
                <li class=\(change.change.rawValue)>\(change.kind) \(name)\(table)\(exchange(change.old, change.new))</li>

                """ as Markup
        }
        if properties.isEmpty && changes.isEmpty { return "" }
        return "<h3>Schema</h3>\n<ul class=schema>\n\(properties)\(changes)</ul>\n"
    }

    private func exchange(_ old: String?, _ new: String?) -> Markup {
        let (was, now) = (old.map { "<del>\($0)</del>" as Markup }, new.map { "<ins>\($0)</ins>" as Markup })
        return Markup([was, now].compactMap(\.self).map { "\($0) " })
    }

    private func tables(_ tables: [TableDiff]) -> Markup {
        if tables.isEmpty { return "" }
        let different = tables.filter(\.needsOwnLine)
        let others = tables.count - different.count
        let rest: Markup =
            others == 0 ? "" : "<p class=dim>\(others) \(others == 1 ? "table" : "tables") without changed rows</p>\n"
        if different.isEmpty { return rest }
        return """
            <h3>Rows</h3>
            <div class=wide><table class=counts>
            <thead><tr><th>table<th class=n>before<th class=n>now<th class=n>added<th class=n>removed<th class=n>changed\
            <th>share changed<th>matched by</tr></thead>
            <tbody>
            \(different.map(line))</tbody>
            </table></div>
            \(rest)
            """
    }

    private func line(_ table: TableDiff) -> Markup {
        func cell(_ count: Int, _ style: String) -> Markup {
            count == 0 ? "<td class=\"n dim\">–" : "<td class=\"n \(style)\">\(count)"
        }
        return """
            <tr><th>\(table.name)<td class=n>\(table.rowsBefore)<td class=n>\(table.rowsAfter)\
            \(cell(table.added, "added"))\(cell(table.removed, "removed"))\(cell(table.changed, "changed"))\
            <td>\(bar(table))<td class=dim>\(table.method.words)</tr>

            """
    }

    /// Returns a bar for the proportion of rows that were added, removed or changed.
    private func bar(_ table: TableDiff) -> Markup {
        let all = table.rowsBefore + table.added
        let parts = [("added", table.added), ("removed", table.removed), ("changed", table.changed)]
        let touched = parts.reduce(0) { $0 + $1.1 }
        if touched == 0 { return "" }
        let pieces = parts.filter { $0.1 > 0 }.map { style, count in
            "<i class=\(style) style=\"flex:\(plain: count)\"></i>" as Markup
        }
        // Even a small change must be visible.
        let width = max(3, touched * 100 / max(1, all))
        return """
            <span class=share><span class=bar><span style="width:\(plain: width)%">\(pieces)</span></span> \
            \(percentage(touched, of: all))</span>
            """
    }

    func samples(_ table: TableDiff) -> Markup {
        if table.samples.isEmpty { return "" }
        let groups = RowSample.Kind.allCases.map { kind in group(table, kind, table.samples.filter { $0.kind == kind })
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

    /// Returns the file as a grid of squares, with the first page at the top left; a darker square has more changed pages.
    func map(_ map: PageMap) -> Markup {
        let cells = map.cells(atMost: 1024)
        if cells.isEmpty { return "" }
        let perLine = cells.count > 256 ? 64 : 32
        let lines = (cells.count + perLine - 1) / perLine
        let paths = Shade.allCases.map { shade in
            let squares = cells.indices.filter { Shade(cells[$0]) == shade }.map { index in
                "M\(plain: index % perLine * 10) \(plain: index / perLine * 10)h9v9h-9z" as Markup
            }
            return squares.isEmpty ? "" : "<path class=\(shade.rawValue) d=\"\(squares)\"/>\n" as Markup
        }
        let legend = Shade.allCases.map { "<span><i class=\($0.rawValue)></i>\($0.words)</span>\n" as Markup }
        let pages = max(1, (map.newCount + cells.count - 1) / cells.count)
        return """
            <h3>Pages</h3>
            <p>\(map.changed) of \(map.newCount) pages changed (\(percentage(map.changed, of: map.newCount)))\
            \(map.added > 0 ? ", \(map.added) new" : "")\(map.removed > 0 ? ", \(map.removed) fewer than before" : ""); \
            the page size is \(ByteCount(map.pageSize).description)\
            \(pages > 1 ? "; each square represents up to \(pages) pages" : "").</p>
            <svg class=map viewBox="0 0 \(plain: perLine * 10) \(plain: lines * 10)" role=img \
            aria-label="Map of the changed pages">
            \(paths)</svg>
            <p class=legend>\(legend)</p>

            """
    }

    private enum Shade: String, CaseIterable {
        case none = "p0"
        case few = "p1"
        case some = "p2"
        case most = "p3"
        case new = "pn"

        init(_ cell: PageMap.Cell) {
            switch cell.share {
            case _ where cell.isNew: self = .new
            case 0: self = .none
            case ..<0.25: self = .few
            case ..<0.75: self = .some
            default: self = .most
            }
        }

        var words: String {
            switch self {
            case .none: "unchanged"
            case .few: "less than a quarter changed"
            case .some: "up to three quarters changed"
            case .most: "more than three quarters changed"
            case .new: "new"
            }
        }
    }

    /// The style sheet: the system's font, its light or dark colours, and a single column that fits on a phone.
    static let style: Markup = """
        :root { --back: #f6f7f9; --card: #fff; --ink: #1c2128; --dim: #656d76; --line: #d8dee4; --code: #f0f2f5;
          --added: #1a7f37; --removed: #c1232e; --changed: #8a5a00; --p0: #e4e8ec; --p1: #a9c9f5; --p2: #4d8fe0; --p3: #0b4fa8; }
        @media (prefers-color-scheme: dark) { :root { --back: #0d1117; --card: #161b22; --ink: #e2e8ef; --dim: #8d96a0;
          --line: #2f3640; --code: #21262d; --added: #46c05a; --removed: #ff7b72; --changed: #dba53a;
          --p0: #262c34; --p1: #1f4a80; --p2: #3b82d8; --p3: #a5cfff; } }
        * { box-sizing: border-box; }
        body { margin: 0 auto; max-width: 72rem; padding: 1.5rem 1rem 3rem; background: var(--back); color: var(--ink);
          font: 15px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
        h1 { margin: 0; font-size: 1.6rem; line-height: 1.25; }
        h2 { margin: 0; font-size: 1.2rem; display: flex; flex-wrap: wrap; gap: .3rem .7rem; align-items: center; }
        h3 { margin: 1.4rem 0 .5rem; font-size: .8rem; letter-spacing: .05em; text-transform: uppercase; color: var(--dim); }
        h4 { margin: 1rem 0 .4rem; font-size: .95rem; }
        p { margin: .4rem 0; }
        code, del, ins, .rows td { font: .9em ui-monospace, monospace; }
        code { background: var(--code); border-radius: 4px; padding: .1em .35em; }
        td code { background: none; padding: 0; font-size: 1em; }
        i { font-style: normal; color: var(--dim); }
        .was, .to, .dim, .paths, .tiles .none, .tiles .none b { color: var(--dim); font-weight: normal; }
        .paths { font-size: .85rem; }
        .note { border-left: 3px solid var(--changed); padding-left: .7rem; }
        .tiles { list-style: none; margin: 1.2rem 0; padding: 0; display: grid; gap: .7rem;
          grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); }
        .tiles li, section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
        .tiles li { padding: .7rem 1rem; font-size: .85rem; color: var(--dim); }
        .tiles b { display: block; font-size: 1.5rem; line-height: 1.3; color: var(--ink); font-variant-numeric: tabular-nums; }
        section { padding: 1.1rem 1.2rem 1.3rem; margin: 0 0 1rem; }
        .badge { font-size: .75rem; font-weight: normal; border: 1px solid; border-radius: 2em; padding: .1em .7em; }
        .badge.same { color: var(--dim); }
        .added, .tiles .added b { color: var(--added); } .removed, .tiles .removed b { color: var(--removed); }
        .changed, .tiles .changed b { color: var(--changed); }
        .schema { list-style: none; margin: 0; padding: 0; }
        .schema li { color: var(--ink); padding: .25rem 0 .25rem 1.4rem; position: relative; }
        .schema li::before { position: absolute; left: .2rem; font: bold 1em ui-monospace, monospace; }
        .schema .added::before { content: "+"; color: var(--added); }
        .schema .removed::before { content: "−"; color: var(--removed); }
        .schema .changed::before { content: "~"; color: var(--changed); }
        del { color: var(--removed); } ins { color: var(--added); text-decoration: none; }
        .wide { overflow-x: auto; margin: 0 -1.2rem; padding: 0 1.2rem; overflow-wrap: normal; }
        table { border-collapse: collapse; width: 100%; }
        .counts th, .counts td { white-space: nowrap; }
        .counts th:first-child { position: sticky; left: 0; background: var(--card); }
        .rows { width: auto; min-width: 40%; }
        th, td { text-align: left; vertical-align: top; padding: .35rem .8rem .35rem 0; border-bottom: 1px solid var(--line); }
        thead th { font-size: .8rem; font-weight: normal; color: var(--dim); white-space: nowrap; }
        tbody tr:last-child > * { border-bottom: 0; }
        .n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
        .rows td { max-width: 26rem; min-width: 3rem; overflow-wrap: break-word; }
        .rows .long { min-width: 15rem; }
        .rows .key { font-weight: bold; white-space: nowrap; }
        .both del, .both ins { display: block; font-size: 1em; }
        .share { display: flex; align-items: center; gap: .6rem; white-space: nowrap; font-variant-numeric: tabular-nums; }
        .bar { width: 6rem; height: .5rem; border-radius: 4px; background: var(--p0); overflow: hidden; }
        .bar > span { display: flex; height: 100%; } .bar i { min-width: 2px; background: currentColor; }
        .bar .added { color: var(--added); } .bar .removed { color: var(--removed); } .bar .changed { color: var(--changed); }
        details { margin-top: 1.4rem; border-top: 1px solid var(--line); padding-top: .9rem; }
        summary { cursor: pointer; font-weight: bold; }
        .map { display: block; width: 100%; max-width: 46rem; margin: .7rem 0; }
        .p0 { fill: var(--p0); background: var(--p0); } .p1 { fill: var(--p1); background: var(--p1); }
        .p2 { fill: var(--p2); background: var(--p2); } .p3 { fill: var(--p3); background: var(--p3); }
        .pn { fill: var(--added); background: var(--added); }
        .legend { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; font-size: .8rem; color: var(--dim); }
        .legend i { display: inline-block; width: .75em; height: .75em; margin-right: .45em; border-radius: 2px; }
        @media (max-width: 40rem) { body { padding: 1rem .6rem 2rem; font-size: 14px; } section { padding: 1rem; }
          .wide { margin: 0 -1rem; padding: 0 1rem; } .tiles { grid-template-columns: 1fr 1fr; } .bar { width: 3.5rem; }
          .tiles b { font-size: 1.25rem; } }
        @media print { body { background: none; max-width: none; } section { break-inside: avoid-page; } }

        """
}

extension ReleaseDiff.Entry {
    fileprivate var compared: DatabaseDiff? { if case .compared(let diff) = self { diff } else { nil } }
}

extension SampleValue {
    fileprivate var isNumber: Bool {
        switch self {
        case .integer, .real: true
        case .null, .text, .blob: false
        }
    }

    /// Whether the value is so long that its column needs a minimum width.
    fileprivate var isLong: Bool { if case .text(_, let bytes) = self { bytes > 40 } else { false } }
}
