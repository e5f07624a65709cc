internal import MoultBasics

/// The row in a shared database that records which release its content is from. The content itself does not show that.
public enum ReleaseMarker {
    /// The table that contains this row.
    public static let table = releaseTable
    /// The table of rows that did not fit into a new release.
    public static let rejects = rejectedTable
    /// Tables that moult adds to shared databases, which are not part of their content.
    public static let tables: Set<String> = [table, rejects]
    /// Returns whether a table is moult's own; compares names as SQLite does.
    public static func isOwn(_ name: String) -> Bool { tables.contains { SQLName($0) == SQLName(name) } }
    /// Selects tables and views with these names that are not moult's own, because their columns differ. Does not ask for the
    /// columns of other tables: their modules may exist only in the app. A marker of an earlier build has no transaction.
    public static let foreign = """
        SELECT name FROM sqlite_schema AS x WHERE type IN ('table', 'view') AND CASE lower(name)
            WHEN '\(table)' THEN 'release,sequence,digest' WHEN '\(rejects)' THEN 'release,table,reason,row' END
            != CASE WHEN type = 'view' OR lower(name) NOT IN ('\(table)', '\(rejects)') THEN ''
                ELSE (SELECT replace(group_concat(c.name), ',\(transaction)', '') FROM (SELECT name FROM pragma_table_info(x.name) ORDER BY cid) AS c) END
        """
    /// Creates the table of the marker, or empties it.
    public static let create = """
        CREATE TABLE IF NOT EXISTS \(table)(
            release TEXT NOT NULL, sequence INTEGER NOT NULL, digest TEXT NOT NULL, \(transaction) TEXT NOT NULL);
        DELETE FROM \(table);
        """
    /// The column with the ID of the transaction that last changed the database.
    public static let transaction = "transaction_id"
    /// Writes the row: release, sequence, digest, transaction.
    public static let insert = "INSERT INTO \(table) VALUES(?1, ?2, ?3, ?4)"
    /// Selects whether a database has the table.
    public static let isThere = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = '\(table)'"
    /// Selects the row, with the columns that `insert` writes.
    public static let row = "SELECT * FROM \(table)"
    /// Selects the digest in the row.
    public static let digest = "SELECT digest FROM \(table)"
}
