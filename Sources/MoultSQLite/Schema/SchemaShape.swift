import MoultBasics

/// The structure of a database's schema as seen by programs, independent of its spelling.
///
/// White space, comments, quotes, the case of keywords and mentioned names, and the order of creation make no difference. The
/// order of columns does, and so does the case of a name in its declaration, because programs see both. Tables that SQLite and
/// the modules of virtual tables create for themselves are left out.
package struct SchemaShape: Equatable, Sendable {
    package struct Column: Sendable {
        package var name: String
        /// Type, NOT NULL, default, position in the primary key and so on, as written by `canonicalText`.
        package var facts: String
    }

    package struct Table: Sendable {
        package var name: String
        /// `strict`, `without rowid`, both or empty.
        package var options: String
        package var columns: [Column]
        /// CHECK, PRIMARY KEY, UNIQUE and foreign key constraints, and conflict clauses; sorted.
        package var constraints: [String]
    }

    /// An index, a view, a trigger or a virtual table.
    package struct Item: Sendable {
        package var kind: String
        package var name: String
        package var definition: String
    }

    /// Sorted by name.
    package var tables: [Table]
    /// Sorted by kind and name.
    package var items: [Item]

    /// The shape as text, one fact per line. Equal shapes have equal text. The first line has the version of this format. The
    /// digest of the text is the schema's fingerprint.
    package var canonicalText: String {
        var lines = ["moult schema 1"]
        for table in tables {
            lines.append("table \(quoteIdentifier(table.name))" + (table.options.isEmpty ? "" : " \(table.options)"))
            lines += table.columns.map { "  column \(quoteIdentifier($0.name)) \($0.facts)" }
            lines += table.constraints.map { "  \($0)" }
        }
        lines += items.map { "\($0.kind) \(quoteIdentifier($0.name)) \($0.definition)" }
        return lines.joined(separator: "\n") + "\n"
    }
}

// Swift treats the two encodings of é as equal text; programs that read a schema do not.
extension SchemaShape.Column: Equatable {
    package static func == (one: Self, other: Self) -> Bool {
        one.name.hasBytes(of: other.name) && one.facts.hasBytes(of: other.facts)
    }
}

extension SchemaShape.Table: Equatable {
    package static func == (one: Self, other: Self) -> Bool {
        one.name.hasBytes(of: other.name) && one.options == other.options && one.columns == other.columns
            && one.constraints.elementsEqual(other.constraints) { $0.hasBytes(of: $1) }
    }
}

extension SchemaShape.Item: Equatable {
    package static func == (one: Self, other: Self) -> Bool {
        one.kind == other.kind && one.name.hasBytes(of: other.name) && one.definition.hasBytes(of: other.definition)
    }
}

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
