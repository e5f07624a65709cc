public import MoultBasics

/// The file at the path of a database of the release, and its owner.
public enum Occupant: Sendable, Equatable {
    /// No file exists, and none is expected.
    case nothing
    /// The installed or a kept release has a database with app data at the path, but the file is missing.
    case missing(Database)
    /// A link to the installed generation.
    case generationLink
    /// A file that the release may continue to use: that of the same database, or of one with a compatible kind.
    case own
    /// The file of a database that can be recreated.
    case cache
    /// The file of a database of a different kind, which the release may take over only if the operator allows it.
    case claimed(Database)
    /// A file that moult did not create.
    case foreign
    /// A symbolic link that moult did not create.
    case link(to: String)
    /// A directory or a special file.
    case obstacle
}

extension PlanContext {
    /// Returns the file at the path of a database, and its owner.
    public func occupant(of database: Database) throws -> Occupant {
        let path = path(of: database)
        let before = installedDatabase(at: path)
        switch try store.look(path) {
        case .nothing:
            guard let owner = try owner(at: path), owner.holdsAppData else { return .nothing }
            // A reset creates a database of the installed release again; for another one, a take-over is the consent.
            let isAllowed = before == nil && policy.takeOver.contains(database.name)
            return isAllowed ? .nothing : .missing(owner)
        case .sealedLink: return .generationLink
        case .link(let target):
            if let before, before.holdsAppData, before.kind != database.kind, !database.kind.isMigrated {
                return .claimed(before)
            }
            return .link(to: target)
        case .directory, .other: return .obstacle
        case .file:
            guard let before, !before.kind.isSealed else {
                // A release that does not list the file does not change its owner.
                if let owner = try owner(at: path), owner.holdsAppData, !database.kind.continues(owner.kind) {
                    return .claimed(owner)
                }
                return try isReleased(path, as: database) ? .own : .foreign
            }
            if database.kind.continues(before.kind) { return .own }
            return before.kind.isDisposable ? .cache : .claimed(before)
        }
    }

    /// Returns whether the file at a path is a shared database from this release or a kept one: an update to a release without
    /// the database leaves the file in place.
    private func isReleased(_ path: String, as database: Database) throws -> Bool {
        guard database.kind.isReplaced, let digest = try store.marker(path) else { return false }
        return try digest == database.sha256 || store.releasedDatabase(digest: digest) != nil
    }

    private func installedDatabase(at path: String) -> Database? {
        installed?.databases.first { self.path(of: $0) == path }
    }

    /// Returns the database that owns the file at a path: that of the installed release or, if this release has none at the
    /// path, that of a kept release. Among those, a user database comes first, because after a rollback the file may not belong
    /// to the newest release.
    private func owner(at path: String) throws -> Database? {
        if let listed = installedDatabase(at: path) { return listed }
        let kept = try store.earlierDatabases().filter { self.path(of: $0) == path }
        return kept.first(where: \.kind.isMigrated) ?? kept.first(where: \.holdsAppData) ?? kept.first
    }

    /// Returns whether the installed release has a cache at a path.
    public func hasInstalledCache(at path: String) -> Bool { installedDatabase(at: path)?.kind.isDisposable ?? false }

    /// Returns whether the file at a path belongs to a cache of the installed or an earlier release.
    public func hadCache(at path: String) throws -> Bool { try owner(at: path)?.kind.isDisposable ?? false }

    /// Returns the earlier form of a database whose file the release moves: from the installed release or, if that does not
    /// list the database, from the newest kept release whose file still exists. Returns nil if the file is not moved.
    public func moved(_ database: Database) throws -> Database? {
        guard database.holdsAppData else { return nil }
        let before =
            try installed?.database(database.name)
            ?? store.earlierDatabases().first { earlier in
                guard earlier.name == database.name, earlier.holdsAppData, case .file = try store.look(earlier.path)
                else { return false }
                return try owner(at: earlier.path)?.name == database.name
            }
        guard let before, before.holdsAppData, before.path != database.path else { return nil }
        return before
    }

    /// Throws unless the operator has allowed the release to take over the file.
    public func proveTakeOver(of database: Database, from before: Database) throws {
        if policy.takeOver.contains(database.name) {
            // Through a link, moult can change a database's content but cannot replace its file.
            if !database.kind.isReplaced, case .link(let target) = try store.look(path(of: database)) {
                throw foreignLink(target, at: path(of: database), database)
            }
            return
        }
        let isMoved = path(of: before) != path(of: database)
        throw MoultError(
            .occupied, .refused,
            what: "\(store.path(path(of: before))) belongs to the \(before.kind.rawValue) database \"\(before.name)\"",
            why: "release \(release.version) "
                + (isMoved
                    ? "moves it to \(database.path) as a \(database.kind.rawValue) database, and would replace its content"
                    : "has a \(database.kind.rawValue) database at that path, and would replace the file"),
            now: "Nothing was changed. To let the release take it over, and keep the file in quarantine: "
                + "\(moult: purpose == .rollback ? "rollback" : "apply", "--take-over", database.name)")
    }

    /// Returns the error for an obstacle at the path of a database.
    public func obstacle(at path: String, _ database: Database) throws -> MoultError {
        var (old, number) = ("\(store.path(path)).old", 2)
        while try store.look(old) != .nothing { (old, number) = ("\(store.path(path)).old.\(number)", number + 1) }
        return MoultError(
            .occupied, .refused, what: "\(store.path(path)) is in the way",
            why:
                "the \(database.kind.rawValue) database \"\(database.name)\" must be at this path, which is a directory or a "
                + "special file",
            now: "Nothing was changed. Before you apply again, move the directory or special file away"
                // A database that was installed is not created again without the user's consent.
                + (installedDatabase(at: path) != nil && database.holdsAppData
                    ? ", then restore the database file, or reset it: "
                        + "\(moult: "reset", database.name, "--set-user-data-aside"). To move it away: "
                    : ": ")
                + "\(run: ["mv", store.path(path), old])")
    }

    /// Returns the error for a link that moult did not create.
    public func foreignLink(_ target: String, at path: String, _ database: Database) -> MoultError {
        MoultError(
            .occupied, .refused, what: "\(store.path(path)) is a symbolic link to \(target)",
            why:
                "the \(database.kind.rawValue) database \"\(database.name)\" must be at this path, and moult does not "
                + "follow or replace this link",
            now: "Nothing was changed. Put the file itself there, or move the link away, then apply again.")
    }

    /// Returns the error for a user database that lacks parts of the schema that the app needs.
    public func schemaMisfit(_ lack: String, at place: String) -> MoultError { release.schemaMisfit(lack, at: place) }

    /// Returns the error for a missing database that must not be recreated.
    public func missing(_ database: Database, at path: String) -> MoultError {
        // If the link cannot be read, the error without its target remains.
        if installedDatabase(at: path) == nil, case .link(let target)? = try? store.look(path) {
            return MoultError(
                .missingData, .refused, what: "\(store.path(path)) is a symbolic link to \(target), which is missing",
                why: "its disk may not be mounted",
                now: "Nothing was changed. Before you apply again, mount that disk, or remove the link: "
                    + "\(run: ["rm", store.path(path)])")
        }
        let isInstalled = installedDatabase(at: path) != nil
        let name = release.databases.first { self.path(of: $0) == path }?.name ?? database.name
        return MoultError(
            .missingData, .refused, what: "the \(database.kind.rawValue) database \(store.path(path)) is missing",
            why: "\(isInstalled ? "the installed" : "an earlier") release uses this file; its disk may not be mounted",
            now: "Nothing was changed. Restore the file. To start with "
                + (isInstalled
                    ? "\(database.kind.freshContent) instead: \(moult: "reset", database.name, "--set-user-data-aside")"
                    : "the content of release \(release.version) instead: "
                        + "\(moult: purpose == .rollback ? "rollback" : "apply", "--take-over", name)"))
    }
}

extension Database {
    /// Whether the database has app data or user data that cannot be recreated.
    public var holdsAppData: Bool { kind.holdsAppData }
}

extension Manifest {
    /// Returns the error for a user database that lacks parts of the schema that the app needs.
    public func schemaMisfit(_ lack: String, at place: String) -> MoultError {
        MoultError(
            .userDatabase, .refused, what: "the user database \(place) does not fit release \(version): \(lack)",
            why: "no pending migration of the release changes that, and the app may fail",
            now:
                "Nothing was changed. If a program set user_version without the migration, set it back, and apply again. "
                + "Otherwise the publisher must add a migration, or set \"schema\": \"app\" "
                + "if the app itself changes the schema.")
    }

    /// Returns the error for migrations that do not result in the schema of the template.
    public func migrationMisfit(_ why: String, of database: Database) -> MoultError {
        MoultError(
            .userDatabase, .refused,
            what: "the migrations of \(database.name) do not result in the schema of release \(version)", why: why,
            now: "Nothing was changed. The publisher must correct the migrations, or the template.")
    }
}

extension MoultError {
    /// Returns the error for a release that would leave behind rows that the installed release preserves.
    public static func unpreserved(_ database: Database, _ release: Version, _ table: String, _ rows: Int)
        -> MoultError
    {
        MoultError(
            .preserve, .refused,
            what: "release \(release) does not preserve \(counted(rows, "row")) of \(database.name).\(table)",
            why: "the installed release preserves that table, and the new one does not",
            now: "Nothing was changed. To leave the rows behind in quarantine: "
                + "\(moult: "apply", "--accept-unpreserved")")
    }

    /// Returns the error for a preserved table that the app has renamed.
    public static func renamed(_ database: Database, _ path: String, _ table: String, to new: String, _ rows: Int)
        -> MoultError
    {
        MoultError(
            .preserve, .refused,
            what: "\(path) has \(counted(rows, "row")) of \(database.name).\(table) in the renamed table \(new)",
            why: "the installed release preserves \(table), and a table with another name is not carried over",
            now: "Nothing was changed. Rename the table back. Or leave its rows behind in quarantine: "
                + "\(moult: "apply", "--accept-unpreserved")")
    }

    /// Returns the error for a table of the app with the name that moult uses for rejected rows.
    public static func foreignRejects(_ path: String, lacking column: String) -> MoultError {
        let name = ReleaseMarker.rejects
        return MoultError(
            .preserve, .refused,
            what: "the table \(name) in \(path) does not belong to moult: it has no column \(column)",
            why: "moult uses this name for rows that do not fit into a release",
            now: "Nothing was changed. Rename the table, also in the app: "
                + "\(run: ["sqlite3", path, "ALTER TABLE \(name) RENAME TO app_rejected"])")
    }

    /// Returns the error for rows that the conditions of the installed release cannot select.
    public static func unselectable(_ database: Database, _ table: String, _ cause: MoultError) -> MoultError {
        MoultError(
            .preserve, .refused, what: "the rows to preserve in \(database.name).\(table) cannot be selected",
            why: cause.problem,
            now:
                "Nothing was changed. To leave the rows behind in quarantine: \(moult: "apply", "--accept-unpreserved")",
            cause: cause)
    }

    /// Returns the error for rows of a file from before moult that cannot be read; `table` is nil if no table can be read.
    public static func unreadable(_ database: Database, _ table: String?, _ cause: MoultError) -> MoultError {
        MoultError(
            .preserve, .refused,
            what: "the rows to preserve in \(database.name)\(table.map { ".\($0)" } ?? "") cannot be read",
            why: cause.problem,
            now: "Nothing was changed. To leave the rows behind in the old file, which is kept: "
                + "\(moult: "apply", "--accept-unpreserved")",
            cause: cause)
    }
}
