internal import MoultBasics
internal import MoultSQLite

/// Determines how the database becomes the final file: rewritten by `VACUUM INTO`, or as it is. If rows were only added, in the
/// order of their keys, and indexes were created after the rows, the database is already compact: rewriting it costs a fifth of
/// the build and gains nothing. Such a database also has the same bytes in every build, whereas changed or removed rows would
/// leave remainders in pages.
enum Packing {
    /// The minimum size in bytes: for smaller databases, the check is not worthwhile.
    static let minCheckedSize = 8 << 20

    /// Returns whether the database is as compact as after VACUUM, if rows were only added to it.
    static func isPacked(_ connection: Connection) throws -> Bool {
        let pages = try connection.int("PRAGMA page_count")
        let size = try connection.int("PRAGMA page_size") * pages
        guard size >= minCheckedSize, try connection.int("PRAGMA freelist_count") == 0,
            try connection.int("PRAGMA auto_vacuum") == 0,
            try connection.int("SELECT count(*) FROM pragma_module_list WHERE name = 'dbstat'") == 1
        else { return false }
        // Rows that do not fit leave some space at the ends of pages, even after VACUUM; pages that were split are a
        // third empty.
        return try connection.int("SELECT sum(unused) FROM dbstat") * 16 <= size
    }
}
