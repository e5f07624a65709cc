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
        /// Living: anyone's; can be recreated.
        case cache

        /// The capabilities of a kind. A new kind is a line here; all other code asks these questions and not for the kind.
        private var traits: Traits {
            switch self {
            case .reference: [.sealed]
            case .shared: [.appData, .replaced]
            case .user: [.appData, .migrated, .main]
            case .cache: [.disposable]
            }
        }

        private struct Traits: OptionSet {
            let rawValue: Int
            static let sealed = Self(rawValue: 1)
            static let appData = Self(rawValue: 2)
            static let replaced = Self(rawValue: 4)
            static let migrated = Self(rawValue: 8)
            static let main = Self(rawValue: 16)
            static let disposable = Self(rawValue: 32)
        }

        /// Whether only the publisher writes to it.
        public var isSealed: Bool { traits.contains(.sealed) }
        /// Whether it has what an app or a user wrote: only the operator may give that up.
        public var holdsAppData: Bool { traits.contains(.appData) }
        /// Whether each release replaces its content, and carries the rows over that it preserves.
        public var isReplaced: Bool { traits.contains(.replaced) }
        /// Whether releases bring it to their schema by migrations.
        public var isMigrated: Bool { traits.contains(.migrated) }
        /// Whether the other databases are attached to it.
        public var isMain: Bool { traits.contains(.main) }
        /// Whether it can be recreated at any time, so that one that does not fit is set aside. Its root may be another.
        public var isDisposable: Bool { traits.contains(.disposable) }
    }

    /// Where a reference database is kept.
    public enum Place: String, Sendable, CaseIterable {
        /// Unpacked into the generation.
        case generation
        /// Attached where it lies, next to the manifest; never copied.
        case inPlace = "in-place"
    }

    /// How deeply the staged file is checked.
    public enum Depth: String, Sendable, CaseIterable, Comparable {
        /// Identity and SQLite's quick_check.
        case quick
        /// Also integrity_check and foreign_key_check.
        case full

        /// The deeper check is the greater one.
        public static func < (a: Depth, b: Depth) -> Bool { a == .quick && b == .full }
    }

    /// The checks that the publisher made of the same bytes that the digest names.
    public struct Proof: Sendable, Equatable {
        /// How deeply SQLite checked them.
        public var check: Depth
        /// The version of that SQLite.
        public var sqlite: String
        /// The version of moult that asked it.
        public var moult: Version

        /// A proof of these checks.
        public init(check: Depth, sqlite: String, moult: Version) {
            (self.check, self.sqlite, self.moult) = (check, sqlite, moult)
        }

        /// The proof in the words of plans and of `status`.
        public var words: String { "digest; checked by the publisher with SQLite \(sqlite)" }
    }

    /// How new content gets into a living database.
    public enum Replacement: String, Sendable, CaseIterable {
        /// Written into the file that programs have open, in one transaction.
        case live
        /// Another file replaces the one that no process has open any more.
        case exchange
    }

    /// The action for rows that the installed release preserves and this one does not.
    public enum Unpreserved: String, Sendable, CaseIterable {
        /// The update is refused unless the operator accepts it.
        case refuse
        /// They stay behind in quarantine.
        case keep
    }

    /// Whose business the schema of a user database is.
    public enum Schema: String, Sendable, CaseIterable {
        /// The release's: its template and its migrations say what the database must have.
        case release
        /// The app's, which changes the schema by itself when it opens the database.
        case app
    }

    /// Its name in the manifest.
    public var name: String
    /// The writers of the database.
    public var kind: Kind
    /// The file's name in its generation and in the bundle, or next to the manifest for a database in place.
    public var member: String
    /// The directory in which an archive that moult has not packed has the file; nil at the top.
    public var directory: String?
    /// The bytes of the file.
    public var size: Int
    /// The digest of the file, in hexadecimal digits.
    public var sha256: String
    /// The file's name in the store.
    public var path: String
    /// Where it is kept.
    public var place: Place
    /// How deeply each machine must check it before it goes into service; nil if the publisher's proof is enough.
    public var verify: Depth?
    /// What its publisher proved of it; nil in a manifest that another program made. `pack` decides it, whatever a draft says.
    public var proved: Proof?
    /// How it comes to a connection.
    public var attach: Attach
    /// What SQLite must say of it.
    public var identity: Identity
    /// The rows of a shared database that a new release carries over.
    public var preserve: [Preserve]
    /// The action for rows that an earlier release preserved and this one does not.
    public var unpreserved: Unpreserved
    /// The changes of a user database, by their numbers.
    public var migrations: [Migration]
    /// Whose business the schema of a user database is.
    public var schema: Schema
    /// The way in which new content is installed; nil if the facts decide.
    public var replace: Replacement?
    /// Whether a row in it says which release it is of.
    public var marker: Bool
    /// The caches that may be kept; nil if the schema alone decides.
    public var compatible: Compatible?
    /// Where a draft takes the database from; nil in a sealed manifest.
    public var source: Source?

    /// The file's path in the bundle.
    public var bundlePath: String { directory.map { "\($0)/\(member)" } ?? member }

    /// How a database comes to a connection.
    public struct Attach: Sendable, Equatable {
        /// The schema name on the connection.
        public var alias: String
        /// The databases that open together; nil for those of the store's own connection.
        public var group: String?
    }

    /// What SQLite says of a database; each part is checked if it is given.
    public struct Identity: Sendable, Equatable {
        /// `PRAGMA application_id`.
        public var applicationID: Int?
        /// `PRAGMA user_version`.
        public var userVersion: Int?
        /// `sha256:` and the digest of the schema's canonical text.
        public var schema: String?

        /// Nil values are not checked.
        public init(applicationID: Int? = nil, userVersion: Int? = nil, schema: String? = nil) {
            (self.applicationID, self.userVersion, self.schema) = (applicationID, userVersion, schema)
        }
    }

    /// Rows of the user's that a new release carries over.
    public struct Preserve: Sendable, Equatable {
        /// The action if the release has a row with the same key.
        public enum Conflict: String, Sendable, CaseIterable {
            /// The row of the user stays.
            case keepUser = "keep-user"
            /// The row of the release takes its place.
            case keepNew = "keep-new"
            /// The update is refused.
            case fail
        }
        /// The action for a row that no longer fits.
        public enum Reject: String, Sendable, CaseIterable {
            /// A row that no longer fits stops the update.
            case block
            /// A row that no longer fits is written to a reject table.
            case table
        }
        /// The table that has the rows.
        public var table: String
        /// Which of its rows, in SQL; nil for all of them.
        public var `where`: String?
        /// The action if the release has a row with the same key.
        public var onConflict: Conflict
        /// The action for a row that no longer fits.
        public var onReject: Reject
        /// New column name by old column name, where a column was renamed.
        public var columns: [String: String]
    }

    /// A change of the user's database, in SQL, which sets `user_version` to its number.
    public struct Migration: Sendable, Equatable {
        /// The name of its file in the bundle.
        public var member: String
        /// The bytes of the file.
        public var size: Int
        /// The digest of the file, in hexadecimal digits.
        public var sha256: String
        /// The number that its file name begins with.
        public var number: Int
    }

    /// The newest `user_version` that the release knows; nil if it says nothing about it.
    public var knownUserVersion: Int? {
        let known = max(identity.userVersion ?? 0, migrations.last?.number ?? 0)
        return known > 0 ? known : nil
    }

    /// The requirements for keeping a cache, in addition to its schema.
    public struct Compatible: Sendable, Equatable {
        /// The only `application_id` that may be kept; nil for any.
        public var applicationID: Int?
        /// The lowest `user_version` that may be kept.
        public var userVersionAtLeast: Int?
        /// The highest `user_version` that may be kept.
        public var userVersionAtMost: Int?

        /// The fault of the numbers of a cache; nil if they are valid.
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
        /// A database file that already exists.
        case file(String)
        /// A script in the manner of the sqlite3 shell, with defines for its `${NAME}`.
        case script(String, define: [String: String], analyze: Bool, from: String?)
    }
}
