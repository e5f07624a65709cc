import MoultBasics
import MoultSQLite

/// The foreign keys of a database, and the rows that violate them.
struct ForeignKeys {
    struct Violation {
        let key: StoredRows.Key
        let parent: SQLName
    }

    private struct Reference {
        let child: SQLName
        let parent: SQLName
        /// If `parent` is nil, the key refers to the parent's primary key.
        let columns: [(child: String, parent: String?)]
    }

    private let references: [Reference]

    init(_ connection: Connection) throws {
        var references: [Reference] = []
        for table in try connection.query("PRAGMA main.table_list") {
            guard table[0] == .text("main"), table[2] == .text("table") else { continue }
            let name = table[1].textOrEmpty
            let rows = try connection.query("PRAGMA main.foreign_key_list(\(quoteIdentifier(name)))")
            for (_, columns) in Dictionary(grouping: rows, by: { $0[0].integerOrZero }) {
                let columns = columns.sorted { $0[1].integerOrZero < $1[1].integerOrZero }
                references.append(
                    Reference(
                        child: SQLName(name), parent: SQLName(columns.first?[2].textOrEmpty ?? ""),
                        columns: columns.map { ($0[3].textOrEmpty, $0[4] == .null ? nil : $0[4].textOrEmpty) }))
            }
        }
        self.references = references
    }

    var children: Set<SQLName> { Set(references.map(\.child)) }

    func children(of parents: Set<SQLName>) -> Set<SQLName> {
        Set(references.filter { parents.contains($0.parent) }.map(\.child))
    }

    /// Returns digests of all rows that refer to a missing row, by table.
    func dangling(_ connection: Connection) throws -> [SQLName: Set<KeyDigest>] {
        var all: [SQLName: Set<KeyDigest>] = [:]
        for child in children {
            guard let layout = try TableLayout.of(child, in: connection) else { continue }
            let rows = try StoredRows(layout, connection)
            all[child] = Set(try violations(in: rows, connection).map { try rows.digest(of: $0.key) })
        }
        return all
    }

    /// Returns the rows of a table that refer to a missing row, each once. Returns none if a foreign key of the table does not
    /// match a key of its parent, because SQLite then cannot look up any row.
    func violations(in rows: StoredRows, _ connection: Connection) throws -> [Violation] {
        let table = rows.layout
        let check = "PRAGMA main.foreign_key_check(\(quoteIdentifier(table.name)))"
        var found: [Violation] = []
        var seen: Set<Int64> = []
        var hasUnknown = false
        do {
            try connection.withStatement(check) { row in
                while try row.step() {
                    // A table WITHOUT ROWID has no row number to report.
                    if row.isNull(1) {
                        hasUnknown = true
                    } else if seen.insert(row.int64(1)).inserted {
                        found.append(Violation(key: .rowID(row.int64(1)), parent: SQLName(try row.text(2))))
                    }
                }
            }
        } catch let error as MoultError {
            guard error.sqlite?.message.hasPrefix("foreign key mismatch") == true else { throw error }
            return []
        }
        if !hasUnknown { return found }
        var keys: Set<KeyDigest> = []
        for reference in references where reference.child == SQLName(table.name) {
            try connection.withStatement(try orphans(reference, table, connection)) { row in
                while try row.step() {
                    guard try keys.insert(KeyDigest(of: row, 0..<rows.first)).inserted else { continue }
                    found.append(Violation(key: try rows.key(row), parent: reference.parent))
                }
            }
        }
        guard !found.isEmpty else {
            throw MoultError(
                .shippedViolation, .refused, what: "a row of \(table.name) violates a foreign key",
                why: "SQLite does not report which row")
        }
        return found
    }

    /// Returns a statement that selects the primary keys of the children without a parent. In each comparison, the parent's
    /// column comes first, so that its collation applies.
    private func orphans(_ reference: Reference, _ child: TableLayout, _ connection: Connection) throws -> String {
        let identity = child.identity.map { "c.\($0)" }.joined(separator: ", ")
        let isGiven = reference.columns.map { "c.\(quoteIdentifier($0.child)) IS NOT NULL" }
        let select = "SELECT \(identity) FROM \(child.sql) AS c WHERE \(isGiven.joined(separator: " AND "))"
        guard let parent = try TableLayout.of(reference.parent, in: connection) else { return select }
        let matches = reference.columns.enumerated().map { index, column in
            let key = parent.primaryKey.indices.contains(index) ? parent.columns[parent.primaryKey[index]].name : ""
            return "p.\(quoteIdentifier(column.parent ?? key)) = c.\(quoteIdentifier(column.child))"
        }
        return "\(select) AND NOT EXISTS (SELECT 1 FROM \(parent.sql) AS p WHERE \(matches.joined(separator: " AND ")))"
    }
}
