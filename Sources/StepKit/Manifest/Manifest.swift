public import MoultBasics

/// The description of a release: its databases, their required content, and the requirements for the machine.
///
/// A *draft* is written by a person; a *sealed* manifest has every size and digest. Format 1.
public struct Manifest: Sendable, Equatable {
    /// The format version that this version of moult reads and writes.
    public static let format = 1

    /// How complete a manifest is.
    public enum Form: String, Sendable {
        /// A manifest written by a person.
        case draft
        /// A manifest with every size and digest.
        case sealed
    }

    /// The product that the data belongs to, as a reverse-DNS name.
    public var product: String
    /// The version of the release.
    public var version: Version
    /// The number of the release, which is higher than that of earlier releases, whatever their versions; 0 in a draft that
    /// leaves it to `pack`.
    public var sequence: Int
    /// When the release was made.
    public var created: Timestamp?
    /// When the release expires.
    public var expires: Timestamp?
    /// The publisher's notes on the changes of the release, for the users of the app.
    public var notes: String?
    /// The version and source ID of the SQLite that wrote the databases: another version may write the same rows as different
    /// bytes.
    public var sqlite: String?
    /// Fields that are critical: a reader that does not know one must refuse the manifest.
    public var critical: [String]
    /// The requirements of the release.
    public var requires: Requires
    /// The archive of the release; nil if all databases are in-place databases.
    public var bundle: Bundle?
    /// Downloads that are smaller than the bundle, for stores that have an older release.
    public var patches: [Patch]
    /// The databases of the release.
    public var databases: [Database]
    /// Queries with their expected results.
    public var checks: [GoldenQuery]
    /// Limits on how much tables may change.
    public var budget: [Budget]
    /// The external steps that the release uses.
    public var steps: [StepUse]
    /// Problems that do not prevent reading: fields that this version does not know.
    public var warnings: [String]

    /// Returns whether the budget allows the table to shrink from `old` to `new` rows; a table without a limit must not shrink.
    public func mayShrink(_ database: String, table: String, from old: Int, to new: Int) -> Bool {
        budget.contains {
            $0.database == database && SQLName($0.table) == SQLName(table)
                && $0.shrink?.allows(old - new, of: old) == true
        }
    }

    /// The databases that open together on one connection, by group; those without a group come first.
    public var groups: [AttachGroup] {
        let members = Dictionary(grouping: databases, by: \.attach.group)
        var names: Set<String> = []
        let named = databases.compactMap(\.attach.group).filter { names.insert($0).inserted }
        return ([nil] + named).compactMap { name in members[name].map { Self.group(name, $0) } }
    }

    /// Returns the databases of one group, or those without a group if `name` is nil.
    public func group(_ name: String?) -> AttachGroup { Self.group(name, databases.filter { $0.attach.group == name }) }

    private static func group(_ name: String?, _ all: [Database]) -> AttachGroup {
        let main = all.first { $0.kind.isMain }
        return AttachGroup(name: name, main: main, others: all.filter { $0.name != main?.name })
    }

    /// The databases that open together on one connection.
    public struct AttachGroup: Sendable, Equatable {
        /// The name of the group; nil for the store's own connection.
        public let name: String?
        /// The connection's main database: the first one of kind `user`.
        public let main: Database?
        /// The databases that are attached to the main database.
        public let others: [Database]
    }

    /// Returns the database with this name; nil if the release has none.
    public func database(_ name: String) -> Database? { databases.first { $0.name == name } }

    /// The requirements of a release.
    public struct Requires: Sendable, Equatable {
        /// The versions of the app that can use the release.
        public var app: VersionRange?
        /// The versions of moult that can install the release.
        public var moult: VersionRange?
        /// The installed versions that can be updated directly to this release.
        public var from: VersionRange?

        package init(app: VersionRange? = nil, moult: VersionRange? = nil, from: VersionRange? = nil) {
            (self.app, self.moult, self.from) = (app, moult, from)
        }
    }

    /// The archive with the files of a release.
    public struct Bundle: Sendable, Equatable {
        /// The file name of the archive, next to the manifest.
        public var file: String
        /// The size of the archive in bytes.
        public var size: Int
        /// The digest of the archive, in hexadecimal digits.
        public var sha256: String

        package init(file: String, size: Int, sha256: String) {
            (self.file, self.size, self.sha256) = (file, size, sha256)
        }
    }

    /// A query with the result that it must give on the staged data.
    public struct GoldenQuery: Sendable, Equatable {
        /// The database to query.
        public var on: String
        /// The query; only its first value counts.
        public var sql: String
        /// The expected result.
        public var expect: Expectation
    }

    /// The limits on how much one release may change a table.
    public struct Budget: Sendable, Equatable {
        /// The database.
        public var database: String
        /// The table.
        public var table: String
        /// How many rows a release may remove; nil for none.
        public var shrink: Allowance?
        /// How many rows a release may add; nil for any number.
        public var grow: Allowance?
    }

    /// An external step that the manifest uses; it runs only if the operator's settings permit that.
    public struct StepUse: Sendable, Equatable {
        /// Whether the step runs before or after the phase.
        public enum When: String, Sendable {
            /// Before the phase.
            case before
            /// After the phase.
            case after
        }
        /// The name of the step.
        public var step: String
        /// Whether the step runs before or after the phase.
        public var when: When
        /// The phase before or after which the step runs.
        public var phase: Phase
        /// The parameters of the step.
        public var with: JSON

        package init(step: String, when: When, phase: Phase, with: JSON) {
            (self.step, self.when, self.phase, self.with) = (step, when, phase, with)
        }
    }
}

extension Manifest {
    /// The maximum length of the notes, in bytes.
    static let longestNotes = 16_384
    /// The maximum size of a manifest.
    public static let largest = 1 << 20

    /// Reads and validates a manifest; `source` names it in errors.
    public init(parsing bytes: [UInt8], as form: Form, source: String) throws {
        if bytes.count > Self.largest {
            throw MoultError(
                .manifest, what: "the manifest \(source) is too large",
                why: "it has \(bytes.count) bytes, and the limit is \(Self.largest)")
        }
        let json = try JSON(parsing: bytes, as: form == .draft ? .draft : .plain, source: source)
        var reader = ManifestReader(form: form, source: source)
        self = try reader.manifest(Fields(json, failure: reader.failure))
    }
}
