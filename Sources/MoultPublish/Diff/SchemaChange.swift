import MoultBasics
package import MoultRows
import MoultSQLite

/// One difference between two schemas.
package struct SchemaChange: Sendable, Equatable {
    package var change: RowDifference
    /// `table`, `column`, `order of columns`, `constraint`, `index`, `view`, `trigger` or `virtual table`.
    package var kind: String
    package var name: String
    package var table: String?
    /// The old and the new form, from the schema's canonical text.
    package var old: String?
    package var new: String?

    /// The change on one line: `column price of table food: REAL -> INTEGER not null`.
    package var words: String {
        var subject = name.isEmpty ? kind : "\(kind) \(name)"
        if let table { subject += " of table \(table)" }
        return switch (change, old, new) {
        case (.added, _, let new?): "\(subject) added: \(new)"
        case (.removed, let old?, _): "\(subject) removed: \(old)"
        case (.changed, let old?, let new?): "\(subject) changed: \(old) -> \(new)"
        default: "\(subject) \(change.rawValue)"
        }
    }

    /// Returns the changes from one schema to the other, table by table, followed by those of indexes, views and other items.
    static func all(from old: SchemaShape, to new: SchemaShape) -> [SchemaChange] {
        var changes: [SchemaChange] = []
        pair(old.tables, new.tables, by: \.name) { old, new in
            if let old, let new {
                changes += inside(of: old, new)
            } else {
                changes += one("table", (new ?? old)?.name ?? "", nil, old.map(outline), new.map(outline))
            }
        }
        pair(old.items, new.items, by: { "\($0.kind) \($0.name)" }) { old, new in
            let item = new ?? old
            changes += one(item?.kind ?? "", item?.name ?? "", nil, old?.definition, new?.definition)
        }
        return changes
    }

    private static func inside(of old: SchemaShape.Table, _ new: SchemaShape.Table) -> [SchemaChange] {
        func name(_ options: String) -> String { options.isEmpty ? "an ordinary table" : options }
        let table = new.name
        var changes = one("table", table, nil, name(old.options), name(new.options))
        pair(old.columns, new.columns, by: \.name) { old, new in
            changes += one("column", (new ?? old)?.name ?? "", table, old?.facts, new?.facts)
        }
        let (oldOrder, newOrder) = (old.columns.map(\.name), new.columns.map(\.name))
        let kept = Set(oldOrder).intersection(newOrder)
        if oldOrder.filter(kept.contains) != newOrder.filter(kept.contains) {
            changes += one(
                "order of columns", "", table, oldOrder.joined(separator: ", "), newOrder.joined(separator: ", "))
        }
        pair(old.constraints, new.constraints, by: \.self) { old, new in
            changes += one("constraint", "", table, old, new)
        }
        return changes
    }

    private static func one(_ kind: String, _ name: String, _ table: String?, _ old: String?, _ new: String?)
        -> [SchemaChange]
    {
        if let old, let new, old.hasBytes(of: new) { return [] }
        if old == nil, new == nil { return [] }
        let change: RowDifference = old == nil ? .added : new == nil ? .removed : .changed
        return [SchemaChange(change: change, kind: kind, name: name, table: table, old: old, new: new)]
    }

    private static func outline(_ table: SchemaShape.Table) -> String {
        table.columns.map { "\($0.name) \($0.facts)" }.joined(separator: ", ")
    }
}
