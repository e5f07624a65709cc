/// The row by which a living database says which release its content is from; integrity says nothing about that.
public enum ReleaseMarker {
    /// The table with the one row.
    public static let table = "moult_release"
    /// Rows of the user's that did not fit into a new release, if its policy is to keep them there.
    public static let rejects = "moult_rejected"
    /// Tables of moult's own, which are no part of a database's identity.
    public static let tables: Set<String> = [table, rejects]

    /// Makes the table, empty.
    public static let create = """
        CREATE TABLE IF NOT EXISTS moult_release(release TEXT NOT NULL, sequence INTEGER NOT NULL, digest TEXT NOT NULL);
        DELETE FROM moult_release;
        """
    /// Writes the row: release, sequence, digest.
    public static let insert = "INSERT INTO moult_release(release, sequence, digest) VALUES(?1, ?2, ?3)"
    /// Whether a database has the table.
    public static let isThere = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'moult_release'"
    /// The digest in the row.
    public static let digest = "SELECT digest FROM moult_release"
    /// Makes the table of rejected rows.
    public static let createRejects =
        "CREATE TABLE IF NOT EXISTS moult_rejected(release TEXT, \"table\" TEXT, reason TEXT, row TEXT)"
    /// Writes a rejected row: release, table, reason, row.
    public static let insertReject = "INSERT INTO moult_rejected VALUES(?1, ?2, ?3, ?4)"
}
