import MoultBasics

/// The structure of a database's schema as seen by programs, independent of its spelling. White space, comments, quotes, the case
/// of keywords and mentioned names, and the order of creation make no difference. The order of columns does, and so does the case
/// of a name in its declaration, because programs see both. Tables that SQLite and the modules of virtual tables create for
/// themselves are left out.
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

extension SchemaShape {
    /// Returns the differences between this schema and the expected one, as sentences; empty if they are equal.
    package func diff(against expected: SchemaShape) -> [String] {
        var words: [String] = []
        pair(tables, expected.tables, by: \.name) { found, wanted in
            switch (found, wanted) {
            case (let table?, nil): words.append("table \(table.name) is not expected")
            case (nil, let table?): words.append("table \(table.name) is missing")
            case (let found?, let wanted?): words += found.diff(against: wanted).map { "table \(found.name): \($0)" }
            case (nil, nil): break
            }
        }
        pair(items, expected.items, by: { "\($0.kind) \($0.name)" }) { found, wanted in
            switch (found, wanted) {
            case (let item?, nil): words.append("\(item.kind) \(item.name) is not expected")
            case (nil, let item?): words.append("\(item.kind) \(item.name) is missing")
            case (let found?, let wanted?) where found != wanted:
                words.append("\(found.kind) \(found.name) is: \(found.definition); expected: \(wanted.definition)")
            default: break
            }
        }
        return words
    }

    /// Returns the parts of the expected schema that are missing or different in this one. Additional tables, columns and
    /// indexes do not matter.
    package func lacks(of expected: SchemaShape) -> [String] {
        let itemNames = Set(expected.items.map { Array("\($0.kind) \($0.name)".utf8) })
        let expectedTables = Dictionary(expected.tables.map { (Array($0.name.utf8), $0) }) { first, _ in first }
        let wanted = SchemaShape(
            tables: tables.compactMap { table in expectedTables[Array(table.name.utf8)].map { table.part(that: $0) } },
            items: items.filter { itemNames.contains(Array("\($0.kind) \($0.name)".utf8)) })
        return wanted.diff(against: expected)
    }
}

extension SchemaShape.Table {
    /// Returns the part of the table that another table also has.
    fileprivate func part(that other: SchemaShape.Table) -> SchemaShape.Table {
        var part = self
        part.columns = columns.filter { column in other.columns.contains { $0.name.hasBytes(of: column.name) } }
        part.constraints = constraints.filter { own in other.constraints.contains { $0.hasBytes(of: own) } }
        return part
    }

    fileprivate func diff(against expected: SchemaShape.Table) -> [String] {
        var words: [String] = []
        if options != expected.options {
            func name(_ options: String) -> String { options.isEmpty ? "an ordinary table" : options }
            words.append("it is \(name(options)), expected \(name(expected.options))")
        }
        pair(columns, expected.columns, by: \.name) { found, wanted in
            switch (found, wanted) {
            case (let column?, nil): words.append("column \(quoteIdentifier(column.name)) is not expected")
            case (nil, let column?): words.append("column \(quoteIdentifier(column.name)) is missing")
            case (let found?, let wanted?) where found != wanted:
                words.append("column \(quoteIdentifier(found.name)) is \(found.facts), expected \(wanted.facts)")
            default: break
            }
        }
        let (order, wantedOrder) = (columns.map(\.name), expected.columns.map(\.name))
        if order != wantedOrder, order.sorted() == wantedOrder.sorted() {
            words.append(
                "columns are in the order \(order.joined(separator: ", ")), "
                    + "expected \(wantedOrder.joined(separator: ", "))")
        }
        pair(constraints, expected.constraints, by: \.self) { found, wanted in
            if found == nil, let wanted { words.append("the constraint \(wanted) is missing") }
            if wanted == nil, let found { words.append("the constraint \(found) is not expected") }
        }
        return words
    }
}
