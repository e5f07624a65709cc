import MoultBasics

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
