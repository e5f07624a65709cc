/// One database of a release.
public struct Database: Sendable, Equatable {
    /// The four kinds, by who writes: see `moult help kinds`.
    public enum Kind: String, Sendable, CaseIterable {
        /// Sealed: only the publisher writes.
        case reference
        /// Living: the publisher ships, the app writes.
        case shared
        /// Living: the user's; the publisher ships an empty template.
        case user
        /// Living: anyone's; can be made again.
        case cache

        public var isSealed: Bool { self == .reference }
    }

    /// Where a reference database is kept.
    public enum Place: String, Sendable, CaseIterable {
        /// Unpacked into the generation.
        case generation
        /// Attached where it lies, beside the manifest; never copied.
        case inPlace = "in-place"
    }

    /// How deeply the staged file is checked.
    public enum Depth: String, Sendable, CaseIterable {
        /// Identity and SQLite's quick_check.
        case quick
        /// Also integrity_check and foreign_key_check.
        case full
    }

    /// How new content gets into a living database.
    public enum Replacement: String, Sendable, CaseIterable { case live, exchange }

    public var name: String
    public var kind: Kind
    /// The file's name in the bundle, or beside the manifest for a database in place.
    public var member: String
    public var size: Int
    public var sha256: String
    /// The file's name in the store.
    public var path: String
    public var place: Place
    public var verify: Depth
    public var attach: Attach
    public var identity: Identity
    public var preserve: [Preserve]
    public var migrations: [Migration]
    public var replace: Replacement?
    public var marker: Bool
    public var compatible: Compatible?
    /// Where a draft takes the database from; nil in a sealed manifest.
    public var source: Source?

    public struct Attach: Sendable, Equatable {
        /// The schema name on the connection.
        public var alias: String
    }

    /// What SQLite says of a database; each part is checked if it is given.
    public struct Identity: Sendable, Equatable {
        public var applicationID: Int?
        public var userVersion: Int?
        /// `sha256:` and the digest of the schema's canonical text.
        public var schema: String?

        public init(applicationID: Int? = nil, userVersion: Int? = nil, schema: String? = nil) {
            (self.applicationID, self.userVersion, self.schema) = (applicationID, userVersion, schema)
        }
    }

    /// Rows of the user's that a new release carries over.
    public struct Preserve: Sendable, Equatable {
        public enum Conflict: String, Sendable, CaseIterable {
            case keepUser = "keep-user"
            case keepNew = "keep-new"
            case fail
        }
        public enum Reject: String, Sendable, CaseIterable {
            /// A row that no longer fits stops the update.
            case block
            /// A row that no longer fits is written to a reject table.
            case table
        }
        public var table: String
        public var `where`: String?
        public var onConflict: Conflict
        public var onReject: Reject
        /// New column name by old column name, where a column was renamed.
        public var columns: [String: String]
    }

    /// A change of the user's database, in SQL, which sets `user_version` to its number.
    public struct Migration: Sendable, Equatable {
        public var member: String
        public var size: Int
        public var sha256: String
        /// The number that its file name begins with.
        public var number: Int
    }

    /// The newest `user_version` that the release knows; nil if it says nothing about it.
    public var knownUserVersion: Int? {
        let known = max(identity.userVersion ?? 0, migrations.last?.number ?? 0)
        return known > 0 ? known : nil
    }

    /// What a cache must have, besides its schema, to be kept.
    public struct Compatible: Sendable, Equatable {
        public var applicationID: Int?
        public var userVersionAtLeast: Int?
        public var userVersionAtMost: Int?

        /// What is wrong with the numbers of a cache; nil if nothing is.
        public func fault(applicationID id: Int, userVersion version: Int) -> String? {
            if let applicationID, id != applicationID { return "its application_id is \(id), not \(applicationID)" }
            if let least = userVersionAtLeast, version < least {
                return "its user_version is \(version), and the release needs at least \(least)"
            }
            if let most = userVersionAtMost, version > most {
                return "its user_version is \(version), and the release knows at most \(most)"
            }
            return nil
        }
    }

    /// Where a draft's database comes from, relative to the draft.
    public enum Source: Sendable, Equatable {
        /// A database file that is there already.
        case file(String)
        /// A script in the manner of the sqlite3 shell, with defines for its `${NAME}`.
        case script(String, define: [String: String], analyze: Bool, from: String?)
    }
}
