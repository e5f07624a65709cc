internal import MoultFiles

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

                """,
            main: "\(tiles)\(notes)\(databases)"
        )
        .html
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
}

extension ReleaseDiff.Entry {
    fileprivate var compared: DatabaseDiff? { if case .compared(let diff) = self { diff } else { nil } }
}
