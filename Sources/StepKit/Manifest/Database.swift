/// One database of a release.
public struct Database: Sendable, Equatable {
    /// The kinds of databases, by who writes to them: see `moult help kinds`.
    public enum Kind: String, Sendable, CaseIterable {
        /// Read-only: only the publisher writes.
        case reference
        /// Writable: the publisher ships it, and the app writes to it.
        case shared
        /// Writable: belongs to the user; the publisher ships an empty template.
        case user
        /// Writable: the app can recreate it.
        case cache

        /// The traits of a kind. A new kind needs a line here; most other code checks the traits instead of the kind.
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

        /// Whether only the publisher writes to the database.
        public var isSealed: Bool { traits.contains(.sealed) }
        /// Whether the database has app data or user data, which only the operator may discard.
        public var holdsAppData: Bool { traits.contains(.appData) }
        /// Whether each release replaces the content and carries over the rows that the release preserves.
        public var isReplaced: Bool { traits.contains(.replaced) }
        /// Whether releases migrate the schema.
        public var isMigrated: Bool { traits.contains(.migrated) }
        /// Whether the other databases are attached to this one.
        public var isMain: Bool { traits.contains(.main) }
        /// Whether the app can recreate the database at any time. Such a database is set aside if it does not match the
        /// release, and it may be in a separate directory.
        public var isDisposable: Bool { traits.contains(.disposable) }
        /// The content of a database after a reset, for messages.
        public var freshContent: String { isReplaced ? "the shipped content" : "a new database" }
        /// Returns whether a database of this kind may continue to use the file of a database of the kind `before`.
        public func continues(_ before: Self) -> Bool { self == before || (before.isReplaced && isMigrated) }
    }

    /// Where a reference database is kept.
    public enum Place: String, Sendable, CaseIterable {
        /// Unpacked into the generation.
        case generation
        /// Attached where it is, next to the manifest; never copied.
        case inPlace = "in-place"
    }

    /// How thoroughly the staged file is checked.
    public enum Depth: String, Sendable, CaseIterable, Comparable {
        /// Identity and SQLite's quick_check.
        case quick
        /// Also integrity_check and foreign_key_check.
        case full

        /// Returns true if `a` is `quick` and `b` is `full`.
        public static func < (a: Depth, b: Depth) -> Bool { a == .quick && b == .full }
    }

    /// A record of the checks that the publisher ran on the file with the digest in the manifest.
    public struct Proof: Sendable, Equatable {
        /// The check that SQLite ran.
        public var check: Depth
        /// The version of SQLite that ran the checks.
        public var sqlite: String
        /// The version of moult that ran the checks.
        public var moult: Version

        /// Creates a proof of these checks.
        public init(check: Depth, sqlite: String, moult: Version) {
            (self.check, self.sqlite, self.moult) = (check, sqlite, moult)
        }

        /// The text of the proof in plans and in `status`.
        public var words: String { "digest; checked by the publisher with SQLite \(sqlite)" }
    }

    /// What happens to rows that the installed release preserves and this one does not.
    public enum Unpreserved: String, Sendable, CaseIterable {
        /// The update is refused unless the operator accepts it.
        case refuse
        /// The rows are kept only in quarantine.
        case keep
    }

    /// Who changes the schema of a user database.
    public enum SchemaOwner: String, Sendable, CaseIterable {
        /// The release: its template and its migrations define the schema.
        case release
        /// The app, when it opens the database.
        case app
    }

    /// The name of the database in the manifest.
    public var name: String
    /// The kind of the database.
    public var kind: Kind
    /// The file's name in its generation and in the bundle, or, for an in-place database, next to the manifest.
    public var member: String
    /// The directory of the file in an archive that another program packed; nil at the top level.
    public var directory: String?
    /// The size of the file in bytes.
    public var size: Int
    /// The digest of the file, in hexadecimal digits.
    public var sha256: String
    /// The file's name in the store.
    public var path: String
    /// Where the file is kept.
    public var place: Place
    /// The check that each machine must run before it uses the file; nil if the publisher's proof is enough.
    public var verify: Depth?
    /// The publisher's proof; nil in a manifest that another program wrote. `pack` sets it, whatever the draft
    /// contains.
    public var proved: Proof?
    /// How the database is attached to a connection.
    public var attach: Attach
    /// Values that SQLite must report for the database.
    public var identity: Identity
    /// The rows of a shared database that a new release carries over.
    public var preserve: [Preserve]
    /// What happens to rows that an earlier release preserved and this one does not.
    public var unpreserved: Unpreserved
    /// The migrations of a user database, ordered by number.
    public var migrations: [Migration]
    /// Who changes the schema of a user database.
    public var schemaOwner: SchemaOwner
    /// The conditions for keeping a cache; nil if only the schema matters.
    public var compatible: Compatible?
    /// The source of the database in a draft; nil in a sealed manifest.
    public var source: Source?

    /// The file's path in the bundle.
    public var bundlePath: String { directory.map { "\($0)/\(member)" } ?? member }

    /// How a database is attached to a connection.
    public struct Attach: Sendable, Equatable {
        /// The schema name on the connection.
        public var alias: String
        /// The name of the group of databases that open together; nil for the group on the store's own connection.
        public var group: String?
        /// Whether queries always write the database's name before the names of its tables, so that other databases may have tables of
        /// the same names.
        public var isQualified = false
    }

    /// Values that SQLite reports for a database; each value that is not nil is checked.
    public struct Identity: Sendable, Equatable {
        /// `PRAGMA application_id`.
        public var applicationID: Int?
        /// `PRAGMA user_version`.
        public var userVersion: Int?
        /// `sha256:` and the digest of the schema's canonical text.
        public var schema: String?
        /// `PRAGMA encoding`: `UTF-8`, `UTF-16le` or `UTF-16be`. The encoding of a writable database never changes.
        public var encoding: String?

        /// Creates an identity; nil values are not checked.
        public init(
            applicationID: Int? = nil, userVersion: Int? = nil, schema: String? = nil, encoding: String? = nil
        ) {
            (self.applicationID, self.userVersion) = (applicationID, userVersion)
            (self.schema, self.encoding) = (schema, encoding)
        }
    }

    /// Rows of a table that a new release carries over, and the rules for that.
    public struct Preserve: Sendable, Equatable {
        /// What happens if the release has a row with the same key.
        public enum Conflict: String, Sendable, CaseIterable {
            /// The user's row stays.
            case keepUser = "keep-user"
            /// The release's row replaces the user's row.
            case keepNew = "keep-new"
            /// The update is refused.
            case fail
        }
        /// What happens to a row that does not fit the new content.
        public enum Reject: String, Sendable, CaseIterable {
            /// The update is refused.
            case block
            /// The row is written to `moult_rejected`.
            case table
        }
        /// The table with the rows.
        public var table: String
        /// A SQL condition that selects the rows; nil selects all of them.
        public var `where`: String?
        /// What happens if the release has a row with the same key.
        public var onConflict: Conflict
        /// What happens to a row that does not fit the new content.
        public var onReject: Reject
        /// The new names of renamed columns, by their old names.
        public var columns: [String: String]
    }

    /// A SQL script that changes a user database and sets its `user_version` to `number`.
    public struct Migration: Sendable, Equatable {
        /// The name of the file in the bundle.
        public var member: String
        /// The size of the file in bytes.
        public var size: Int
        /// The digest of the file, in hexadecimal digits.
        public var sha256: String
        /// The number at the start of the file name.
        public var number: Int
    }

    /// The highest `user_version` that the release knows; nil if it does not specify one, or if the app changes the schema itself.
    public var knownUserVersion: Int? {
        if schemaOwner == .app, migrations.isEmpty { return nil }
        let known = max(identity.userVersion ?? 0, migrations.last?.number ?? 0)
        return known > 0 ? known : nil
    }

    /// The conditions for keeping a cache, in addition to its schema.
    public struct Compatible: Sendable, Equatable {
        /// The required `application_id`; nil for any.
        public var applicationID: Int?
        /// The lowest accepted `user_version`.
        public var userVersionAtLeast: Int?
        /// The highest accepted `user_version`.
        public var userVersionAtMost: Int?

        /// Returns why these values do not match; nil if they do.
        public func fault(applicationID id: Int, userVersion version: Int) -> String? {
            if let applicationID, id != applicationID { return "its application_id is \(id), not \(applicationID)" }
            if let least = userVersionAtLeast, version < least {
                return "its user_version is \(version), and the release needs at least \(least)"
            }
            if let most = userVersionAtMost, version > most {
                return "its user_version is \(version), and the release supports at most \(most)"
            }
            return nil
        }
    }

    /// The source of a database in a draft, relative to the draft.
    public enum Source: Sendable, Equatable {
        /// A database file that already exists.
        case file(String)
        /// A script for the sqlite3 shell, with values for its `${NAME}` placeholders.
        case script(String, define: [String: String], analyze: Bool, from: String?)
    }
}
