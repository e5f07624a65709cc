import MoultRows
internal import MoultSQLite

extension DiffPage {
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

    /// Returns a table with a line for each table that differs, and the number of the other tables.
    private func tables(_ tables: [TableDiff]) -> Markup {
        if tables.isEmpty { return "" }
        let different = tables.filter(\.needsOwnLine)
        let others = tables.count - different.count
        let rest: Markup =
            others == 0
            ? "" : "<p class=dim>\(others) \(others == 1 ? "table" : "tables") without changed rows</p>\n"
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
}
