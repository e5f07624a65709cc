internal import MoultFiles

/// The publisher's choices for a build, in addition to the script.
package struct BuildOptions {
    /// The values of `${NAME}` in the script.
    package var defines: [String: String] = [:]
    /// Lets the script read files outside its own directory.
    package var allowOutside = false
    /// Set in the result; nil leaves what the script set.
    package var applicationID: Int32?
    package var userVersion: Int32?
    /// Runs ANALYZE at the end.
    package var analyze = false
    /// The database of the previous release, whose layout is kept where rows are unchanged.
    package var from: String?
    /// Where `${env.X}` and `SOURCE_DATE_EPOCH` come from.
    package var environment = Subprocess.ownEnvironment
    /// Gets every warning as it comes.
    package var warn: (BuildWarning) -> Void = { _ in }
    /// Gets what the script prints: `.print`, `.echo`, the rows of its queries.
    package var output: ([UInt8]) -> Void = { _ in }
    /// Asked again and again: whether SQLite should stop what it is at.
    package var shouldStop: (@Sendable () -> Bool)?
    /// Receives the progress, and may throw to stop it.
    package var progress: (BuildProgress) throws -> Void = { _ in }

    package init() {}
}

/// A remark that a publisher should look at; the build continues.
package struct BuildWarning: Equatable, Sendable, CustomStringConvertible {
    package let place: Place?
    package let text: String

    /// `food.csv:12: expected 4 columns but found 3 - filling the rest with NULL`
    package var description: String { place.map { "\($0): \(text)" } ?? text }
}

/// How far a build is.
package enum BuildProgress: Equatable, Sendable {
    /// A statement or command of the script begins.
    case running(Place)
    /// So many of the file's rows are in the table.
    case importing(file: String, rows: Int, bytes: Int, of: Int)
    /// The result is written in its final form.
    case sealing
}

extension BuildProgress {
    /// The same in words and bytes; the lines of a script and the sealing have no measure.
    package func part(of what: String) -> PackProgress {
        switch self {
        case .running(let place): PackProgress(what: "\(what): \(place)", done: 0, total: 0)
        case .importing(let file, _, let bytes, let all):
            PackProgress(what: "\(what): import \(file)", done: bytes, total: all)
        case .sealing: PackProgress(what: "\(what): seal", done: 0, total: 0)
        }
    }
}

/// The output of a build, and its inputs.
package struct BuildReport: Sendable {
    package struct Import: Equatable, Sendable {
        package let file: String
        package let table: String
        package let rows: Int
    }

    /// How the pages of the result came to be as they do.
    package enum Layout: Equatable, Sendable {
        /// Rewritten, packed.
        case vacuumed
        /// As the script wrote them, which is packed already.
        case asWritten
        /// Rewritten, because the previous release's layout could not be kept, and the reason.
        case repacked(because: String)
        /// The previous release's, with these rows changed.
        case kept(RowChanges)
    }

    package let output: String
    package let size: Int
    /// Every file that was read, absolute and sorted: the same bytes in them give the same result.
    package let inputs: [String]
    package let imports: [Import]
    package let layout: Layout
    /// The SQLite that wrote it: version and source id.
    package let sqliteVersion: String
    package let sqliteSource: String
    /// What git said, if the script asked; `isDirty` is for `pack` to refuse.
    package let revision: Revision?
    /// Why a second build may give other bytes; empty if it will not.
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
