extension SchemaShape {
    /// Items that an app can add without adding a row: indexes, triggers, views, virtual tables and generated columns.
    package var derived: [Item] {
        let columns = tables.flatMap { table in
            table.columns.filter(\.isGenerated).map {
                Item(kind: "generated column", name: "\(table.name).\($0.name)", definition: $0.facts)
            }
        }
        return items + columns
    }
}

extension SchemaShape.Column {
    fileprivate var isGenerated: Bool {
        ["virtual as", "stored as"].contains { facts.contains(" \($0) ") }
    }
}

extension SchemaShape.Item {
    /// Creates an item that another process has found.
    package init(foundAs kind: String, _ name: String, _ definition: String) {
        self.init(kind: kind, name: name, definition: definition)
    }
}
