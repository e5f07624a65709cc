internal import MoultBasics
internal import MoultSQLite

/// How a draft becomes the final file: rewritten by `VACUUM INTO`, or as it is.
///
/// A draft in which rows were only ever added, in the order of their keys, and whose indexes were made after the rows, is
/// packed already: rewriting it costs a fifth of the build and gains nothing. The output of a script is then also the same
/// from build to build, because every page is; changed or removed rows would leave pieces in pages.
enum Packing {
    /// Smaller drafts are not worth asking.
    static let askFrom = 8 << 20

    /// Whether the draft is as compact as a vacuum would make it; asked of one that only grew.
    static func isPacked(_ connection: Connection) throws -> Bool {
        let pages = try connection.int("PRAGMA page_count")
        let size = try connection.int("PRAGMA page_size") * pages
        guard size >= askFrom, try connection.int("PRAGMA freelist_count") == 0,
            try connection.int("PRAGMA auto_vacuum") == 0,
            try connection.int("SELECT count(*) FROM pragma_module_list WHERE name = 'dbstat'") == 1
        else { return false }
        // Rows that do not fit leave some room at the ends of pages, and a vacuum leaves that, too; pages that were split
        // are a third empty.
        return try connection.int("SELECT sum(unused) FROM dbstat") * 16 <= size
    }
}
