/// A table in SQL that reads the rows themselves: an index may lack entries, or be ordered by a collation that only the app has,
/// and then it would hide rows.
package struct TableRows {
    /// The table in a FROM clause.
    package let sql: String
    /// The beginning of a statement that counts rows.
    package let countSQL: String
    package let isPrimaryKey: Bool

    /// `primaryKey` is the index of a table WITHOUT ROWID that contains its rows. For such a table, `NOT INDEXED` excludes no
    /// index, and SQLite counts with `count(*)` in any index.
    package init(_ table: String, schema: String = "main", primaryKey: String?) {
        let name = "\(quoteIdentifier(schema)).\(quoteIdentifier(table))"
        sql = name + (primaryKey.map { " INDEXED BY \(quoteIdentifier($0))" } ?? " NOT INDEXED")
        isPrimaryKey = primaryKey != nil
        countSQL = "SELECT \(primaryKey == nil ? "count(*)" : "count(1)") FROM \(sql)"
    }

    package init(_ table: String, schema: String = "main", in connection: Connection) throws {
        let schemaSQL = quoteIdentifier(schema)
        let indexes = try connection.query("PRAGMA \(schemaSQL).index_list(\(quoteIdentifier(table)))")
        let key = Self.primaryKey(indexes)
        // Only few tables have such an index, and listing a table compares the names of all tables.
        let isWithoutRowID =
            try key != nil
            && connection.query("PRAGMA \(schemaSQL).table_list(\(quoteIdentifier(table)))").contains {
                $0[0] == .text(schema) && $0[4] == .integer(1)
            }
        self.init(table, schema: schema, primaryKey: isWithoutRowID ? key : nil)
    }

    /// Returns the index of the primary key among the rows of `PRAGMA index_list`.
    package static func primaryKey(_ indexes: [[Value]]) -> String? {
        indexes.first { $0[3] == .text("pk") }?[1].textOrEmpty
    }
}
