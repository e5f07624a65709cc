internal import MoultFiles

/// The publisher's choices for a build, in addition to the script.
package struct BuildOptions {
    package var defines: [String: String] = [:]
    package var allowOutside = false
    /// The application ID of the result; nil keeps the value that the script set.
    package var applicationID: Int32?
    package var userVersion: Int32?
    package var analyze = false
    /// The database of the previous release, whose layout is kept for unchanged rows.
    package var from: String?
    /// The environment for `${env.X}` and `SOURCE_DATE_EPOCH`.
    package var environment = ProcessEnvironment.all
    package var warn: (BuildWarning) -> Void = { _ in }
    /// Gets the output of the script: `.print`, `.echo`, the rows of its queries.
    package var output: ([UInt8]) -> Void = { _ in }
    /// Called repeatedly; returns true if SQLite should stop the current statement.
    package var shouldStop: (@Sendable () -> Bool)?
    /// Gets the progress, and may throw to stop the build.
    package var progress: (PackProgress) throws -> Void = { _ in }

    package init() {}
}

/// A problem that a publisher should look at; the build continues.
package struct BuildWarning: Equatable, Sendable, CustomStringConvertible {
    package let place: Place?
    package let text: String

    /// The warning as one line: `food.csv:12: expected 4 columns but found 3 - filling the rest with NULL`
    package var description: String { place.map { "\($0): \(text)" } ?? text }
}

package struct BuildReport: Sendable {
    package struct Import: Equatable, Sendable {
        package let file: String
        package let table: String
        package let rows: Int
    }

    /// How the layout of the result's pages was determined.
    package enum Layout: Equatable, Sendable {
        /// Rewritten by VACUUM.
        case vacuumed
        /// Left as the script wrote the pages, because they are already compact.
        case asWritten
        /// Rewritten, because the layout of the previous release could not be kept, for this reason.
        case repacked(because: String)
        /// In the layout of the previous release, with these rows changed.
        case kept(RowChanges)
    }

    package let output: String
    package let size: Int
    /// Every file that was read, as an absolute path, sorted. The same content gives the same result.
    package let inputs: [String]
    package let imports: [Import]
    package let layout: Layout
    package let sqliteVersion: String
    package let sqliteSource: String
    /// The git revision, if the script used it; `pack` refuses one that `isDirty`.
    package let revision: Revision?
    package let unrepeatable: [String]
    package let warnings: Int
}

/// Rows that differ between two releases.
package struct RowChanges: Equatable, Sendable {
    package var added = 0
    package var changed = 0
    package var removed = 0
    package var unchanged = 0
}
