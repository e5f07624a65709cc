public import MoultBasics

/// What describes a release: which databases it has, what each must be, and what is required of the machine.
///
/// A *draft* is written by a person; a *sealed* manifest has every size and digest. Format 1.
public struct Manifest: Sendable, Equatable {
    public static let format = 1

    public enum Form: String, Sendable { case draft, sealed }

    public var product: String
    public var version: Version
    /// Counts releases upward, whatever their version is named; 0 in a draft that leaves it to `pack`.
    public var sequence: Int
    public var created: Timestamp?
    public var expires: Timestamp?
    /// The SQLite that wrote the databases, its version and its source: another one may write the same rows as other bytes.
    public var sqlite: String?
    /// Fields that whoever does not know them must not ignore.
    public var critical: [String]
    public var requires: Requires
    /// The archive of the release; nil if every database lies in place.
    public var bundle: Bundle?
    public var deltas: [Delta]
    public var databases: [Database]
    public var checks: [GoldenQuery]
    public var budget: [Budget]
    public var steps: [StepUse]
    /// What was found and does not stop the reading: fields that this version does not know.
    public var warnings: [String]

    /// Whether the release's budget lets a table lose so many rows; what it does not mention must not lose any.
    public func mayShrink(_ database: String, table: String, from old: Int, to new: Int) -> Bool {
        budget.contains {
            $0.database == database && $0.table.lowercased() == table.lowercased()
                && $0.shrink?.allows(old - new, of: old) == true
        }
    }

    public func database(_ name: String) -> Database? { databases.first { $0.name == name } }

    /// What must be there already.
    public struct Requires: Sendable, Equatable {
        public var app: VersionRange?
        public var moult: VersionRange?
        /// The installed versions from which this release can be reached directly.
        public var from: VersionRange?

        package init(app: VersionRange? = nil, moult: VersionRange? = nil, from: VersionRange? = nil) {
            (self.app, self.moult, self.from) = (app, moult, from)
        }
    }

    /// The archive with the files of a release.
    public struct Bundle: Sendable, Equatable {
        public var file: String
        public var size: Int
        public var sha256: String
        public var frames: Frames?

        package init(file: String, size: Int, sha256: String, frames: Frames?) {
            (self.file, self.size, self.sha256, self.frames) = (file, size, sha256, frames)
        }
    }

    /// The independent zstd frames of a bundle, so that unpacking can use every core.
    public struct Frames: Sendable, Equatable {
        /// The compressed size of each frame.
        public var packed: [Int]
        /// The content's size of each frame.
        public var content: [Int]
        /// The SHA-256 of each frame's content, 64 hexadecimal digits each, one after the other.
        public var sha256: String

        package init(packed: [Int], content: [Int], sha256: String) {
            (self.packed, self.content, self.sha256) = (packed, content, sha256)
        }
    }

    /// A patch from an older release.
    public struct Delta: Sendable, Equatable {
        public var from: Version
        public var file: String
        public var size: Int
        public var sha256: String

        package init(from: Version, file: String, size: Int, sha256: String) {
            (self.from, self.file, self.size, self.sha256) = (from, file, size, sha256)
        }
    }

    /// A query with the answer it must give on the staged data.
    public struct GoldenQuery: Sendable, Equatable {
        public var on: String
        public var sql: String
        public var expect: Expectation
    }

    /// How much a table may change by one release.
    public struct Budget: Sendable, Equatable {
        public var database: String
        public var table: String
        public var shrink: Allowance?
        public var grow: Allowance?
    }

    /// A step by somebody else, named by the manifest; the operator's settings decide whether it may run.
    public struct StepUse: Sendable, Equatable {
        public enum When: String, Sendable { case before, after }
        public var step: String
        public var when: When
        public var phase: Phase
        public var with: JSON
    }
}
