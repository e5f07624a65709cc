public import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

/// A fault of a store or of one of its databases, or an advice: its severity, its cause, and what to do.
///
///     for finding in try await store.verify(deep: true) { print(finding.severity, finding, finding.advice ?? "") }
public struct Finding: Sendable, Equatable, CustomStringConvertible {
    /// How bad a finding is.
    public enum Severity: String, Sendable, Comparable {
        /// Nothing is wrong: an advice, or something that could not be checked now.
        case note
        /// Apps and updates work, but someone should look at it.
        case warning
        /// An app cannot use a database, or the store cannot be updated.
        case critical

        private var rank: Int { self == .note ? 0 : self == .warning ? 1 : 2 }
        public static func < (a: Self, b: Self) -> Bool { a.rank < b.rank }
    }

    /// What a finding is about.
    public enum Kind: String, Sendable {
        // A database of the installed release.
        /// Nothing is at the path of the database.
        case missing
        /// SQLite cannot use the file, or the content of a replaceable database does not fit the release.
        case damaged
        /// The schema of the app's database lacks a part of the release's schema.
        case schema
        /// The content is from another release.
        case outdated
        /// Migrations of the release have not run on the database.
        case unmigrated
        /// The file is not the one of the release, or its path leads to another file.
        case changed
        /// A file beside a read-only database changes what SQLite reads.
        case sidecar
        /// Every update refuses to write to the database, although apps can use it.
        case blocked
        /// Another process has the database locked, so that it was not checked.
        case locked
        /// This user may not read the file, or a part of it cannot be read.
        case denied
        /// The file could not be opened.
        case unopened
        /// The file is a copy of a verified file, and was not read.
        case unverified

        // The store.
        /// No release is installed, or the link to it cannot be read.
        case pointer
        /// The files of an installed release are damaged.
        case generation
        /// An update is unfinished.
        case unfinished
        /// A part of the history cannot be read.
        case history
        /// The record of holds cannot be read.
        case holds
        /// The quarantine cannot be read, or is over its budget.
        case quarantine
        /// The last attempts to update failed.
        case failure
        /// The feed was not asked for longer than the settings expect.
        case missedRuns
        /// A consumer did not reload after the last update.
        case consumer
        /// The store cannot be written, so that no update can be installed.
        case unwritable
        /// The settings name another product.
        case product

        // Releases and keys.
        /// The installed release was withdrawn, or its keys were revoked.
        case withdrawn
        /// A newer release is not installed.
        case newer
        /// A release is on hold.
        case hold
        /// The feed, the release or the list of keys has expired or expires soon.
        case expiry
        /// The installed data is older than the settings allow.
        case age
        /// The list of keys under which the release was installed is missing.
        case keyList
        /// The clock of this machine is before the time when the feed was made.
        case clock
        /// Rows of the app that an update did not carry over are in quarantine.
        case uncarried
        /// A process reads a release that is not in service.
        case laggard

        // Files and the system.
        /// Root does not use a store that other users can change.
        case custody
        /// Every user can write to a file.
        case writable
        /// No user can write to a file.
        case readOnly
        /// A secret can be read by others.
        case secrets
        /// A secret is sent without encryption.
        case plainSecret
        /// A symlink points to a missing file.
        case dangling
        /// A directory or a file of moult is of another kind.
        case wrongKind
        /// A file in moult's directory is unknown.
        case unknown
        /// A kept release is not needed.
        case unused
        /// A program ended during a transaction.
        case hotJournal
        /// A database in WAL mode is in a read-only directory.
        case walReadOnly
        /// SQLite has a known bug.
        case sqliteVersion
        /// The file system may have no reliable locks.
        case network
        /// `/proc` is not mounted.
        case proc
    }

    /// What the finding is about.
    public let kind: Kind
    /// How bad it is.
    public let severity: Severity
    /// The affected file; nil if the finding is not about a file.
    public let path: String?
    /// The name of the affected database, if any.
    public let database: String?
    /// The fault, as a sentence without a full stop.
    public let what: String
    /// Why, or what follows from it.
    public let why: String?
    /// What to do; nil if nothing helps.
    public internal(set) var advice: Advice?

    package init(
        _ kind: Kind, _ severity: Severity = .critical, path: String? = nil, database: String? = nil, _ what: String,
        why: String? = nil, advice: Advice? = nil
    ) {
        (self.kind, self.severity, self.path, self.database) = (kind, severity, path, database)
        (self.what, self.why, self.advice) = (what, why, advice)
    }

    /// The path and what is wrong, such as `/srv/store/food.db: it is missing`.
    public var description: String { (path.map { "\($0): " } ?? "") + what }

    package func advising(_ change: (Advice) -> Advice) -> Finding {
        var finding = self
        finding.advice = advice.map(change)
        return finding
    }

    package var json: JSON {
        .record([
            "kind": kind.rawValue, "severity": severity.rawValue, "path": path, "database": database, "what": what,
            "why": why, "advice": advice?.description,
        ])
    }
}

extension Finding.Kind {
    /// The kind of an error that ends the check of a database. Only SQLite's own errors concern the content.
    init(of error: MoultError) {
        self =
            Files.isDenied(error)
            ? .denied : error.outcome == .busy ? .locked : error.sqlite == nil ? .unopened : .damaged
    }
}

extension [Finding] {
    package var worst: Finding.Severity? { map(\.severity).max() }

    mutating func add(
        _ kind: Finding.Kind, _ severity: Finding.Severity = .critical, path: String? = nil, database: String? = nil,
        _ what: String, why: String? = nil, advice: Advice? = nil
    ) { append(Finding(kind, severity, path: path, database: database, what, why: why, advice: advice)) }
}

extension Advice {
    /// A command without words around it.
    package init(moult words: String...) { self = "\(moult: words)" }

    static func installing(_ settings: Settings) -> Advice {
        settings.feed == nil ? Advice(moult: "apply", "RELEASE") : Advice(moult: "apply")
    }

    /// How to replace the file of a writable database with a new one; the rows that only the app had cannot be created again.
    static func resetting(
        _ database: Database, isMissing: Bool = false, restore: String = "Restore the file"
    ) -> Advice {
        let reset = Advice.Command(resetCommand(for: database))
        if database.kind.isDisposable { return "To create it again: \(reset)" }
        let fresh = database.kind.freshContent
        return isMissing
            ? "\(restore). To start with \(fresh) instead: \(reset)"
            : "Restore a backup. To set it aside and start with \(fresh) instead: \(reset)"
    }

    static func resetCommand(for database: Database) -> [String] {
        ["moult", "reset", database.name] + (database.kind.isDisposable ? [] : ["--set-user-data-aside"])
    }

    package var isCommand: Bool { pieces.count == 1 && pieces[0].command != nil }
}
