/// A table in SQL that reads the rows themselves: an index may lack entries, or be ordered by a collation that only the app has,
/// and then it would hide rows.
struct TableRows {
    /// The table in a FROM clause.
    let sql: String
    /// The beginning of a statement that counts rows.
    let countSQL: String
    private let isPrimaryKey: Bool

    /// `primaryKey` is the index of a table WITHOUT ROWID that contains its rows. For such a table, `NOT INDEXED` excludes no
    /// index, and SQLite counts with `count(*)` in any index.
    init(_ table: String, schema: String = "main", primaryKey: String?) {
        let name = "\(quoteIdentifier(schema)).\(quoteIdentifier(table))"
        sql = name + (primaryKey.map { " INDEXED BY \(quoteIdentifier($0))" } ?? " NOT INDEXED")
        isPrimaryKey = primaryKey != nil
        countSQL = "SELECT \(primaryKey == nil ? "count(*)" : "count(1)") FROM \(sql)"
    }

    /// Returns a WHERE clause for rows that satisfy one of the conditions, and `other` if given. The conditions do not look up the
    /// primary key: its order may be one that only the app knows.
    func whereSQL(_ conditions: [String?], and other: String? = nil) -> String {
        Selection.whereSQL(conditions, and: other, mayLookUp: !isPrimaryKey)
    }

    init(_ table: String, schema: String = "main", in connection: Connection) throws {
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
    static func primaryKey(_ indexes: [[Value]]) -> String? {
        indexes.first { $0[3] == .text("pk") }?[1].textOrEmpty
    }
}
