internal import CSQLite

/// A version of SQLite, and its bugs that may damage a valid database.
package struct SQLiteVersion: Sendable, Equatable, CustomStringConvertible {
    /// The version as SQLite encodes it: `3_040_001` for 3.40.1.
    package let number: Int
    package init(number: Int) { self.number = number }

    package static var linked: SQLiteVersion { SQLiteVersion(number: Int(sqlite3_libversion_number())) }

    /// The version and source id of the library that this process uses, which determine the bytes that it writes.
    package static var linkedSource: String { "\(linked) \(String(cString: sqlite3_sourceid()))" }

    package var description: String { "\(number / 1_000_000).\(number / 1000 % 1000).\(number % 1000)" }

    /// Whether part of a WAL database may be lost if two connections write and checkpoint at the same moment: since 3.7.0,
    /// fixed in 3.51.3, and in 3.50.7 and 3.44.6 of the older branches (sqlite.org/wal.html, "The WAL-Reset Bug").
    package var hasWALResetBug: Bool {
        let isFixedBranch = (3_044_006..<3_045_000).contains(number) || (3_050_007..<3_051_000).contains(number)
        return (3_007_000..<3_051_003).contains(number) && !isFixedBranch
    }

    /// Whether ROLLBACK TO with journals in memory may damage the database: 3.35.0 to 3.37.1
    /// (sqlite.org/releaselog/3_37_2.html).
    package var hasSavepointBug: Bool { (3_035_000..<3_037_002).contains(number) }
}
