public import MoultBasics

/// Whose file is at the path that a database of the release has.
public enum Occupant: Sendable, Equatable {
    /// Nothing is there, and nothing has to be.
    case nothing
    /// The installed release has a database with the app's data there, and its file is missing.
    case missing(Database)
    /// A link to the installed generation.
    case generationLink
    /// The file of the same database, or of one that the release may continue with.
    case own
    /// The file of a database that may be recreated.
    case cache
    /// The file of a database of another kind: only the operator may let the release take it over.
    case claimed(Database)
    /// A file that moult did not make.
    case foreign
    /// A symbolic link that moult did not make.
    case link(to: String)
    /// A directory or a special file.
    case obstacle
}

extension PlanContext {
    /// Whose file is at the path of a database.
    public func occupant(of database: Database) throws -> Occupant {
        let path = path(of: database)
        let before = isAdopted(installedGeneration) ? nil : installed?.databases.first { self.path(of: $0) == path }
        switch try store.look(path) {
        case .nothing:
            guard let before, before.holdsAppData, database.holdsAppData else { return .nothing }
            return .missing(before)
        case .sealedLink: return .generationLink
        case .link(let target):
            if let before, before.holdsAppData, before.kind != database.kind, !database.kind.isMigrated {
                return .claimed(before)
            }
            return .link(to: target)
        case .directory, .other: return .obstacle
        case .file:
            if policy.alwaysAdopts { return .foreign }
            guard let before, !before.kind.isSealed else {
                // As a cache, data that an earlier release had for the user could be removed without the operator's word.
                if before == nil, database.kind.isDisposable, let earlier = try store.earlierDatabase(at: path),
                    earlier.holdsAppData
                {
                    return .claimed(earlier)
                }
                // The file of an earlier release is moult's own, also when the installed one does not list it.
                return try database.kind.isReplaced && store.marker(path) == database.sha256 ? .own : .foreign
            }
            if before.kind == database.kind || (before.kind.isReplaced && database.kind.isMigrated) { return .own }
            return before.kind.isDisposable ? .cache : .claimed(before)
        }
    }

    /// Whether the installed release has a cache at a path.
    public func hasInstalledCache(at path: String) -> Bool {
        guard !isAdopted(installedGeneration) else { return false }
        return installed?.databases.contains { $0.kind.isDisposable && self.path(of: $0) == path } ?? false
    }

    /// Whether the newest kept release with a database at a path has a cache there, so that the file is moult's own.
    public func hadCache(at path: String) throws -> Bool {
        if isAdopted(installedGeneration) { return false }
        return try store.earlierDatabase(at: path)?.kind.isDisposable ?? false
    }

    /// Whether a generation has the files that were there before moult.
    public func isAdopted(_ generation: String?) -> Bool { generation?.hasPrefix("0+adopted") ?? false }

    /// Whether files from before moult come back.
    public var bringsBackAdopted: Bool { purpose == .rollback && isAdopted(generation) }

    /// The path where the installed release has a database with the app's data that the release has elsewhere.
    public func movedFrom(_ database: Database) -> String? {
        guard database.holdsAppData, !isAdopted(installedGeneration), !isAdopted(generation),
            let before = installed?.database(database.name), before.holdsAppData, before.path != database.path
        else { return nil }
        return before.path
    }

    /// Throws unless the operator lets the release take the file over.
    public func proveTakeOver(of database: Database, from before: Database) throws {
        if policy.takeOver.contains(database.name) {
            // A link can only be written through.
            if !database.kind.isReplaced, case .link(let target) = try store.look(path(of: database)) {
                throw foreignLink(target, at: path(of: database), database)
            }
            return
        }
        throw MoultError(
            .occupied, .refused,
            what:
                "\(store.path(path(of: database))) belongs to the \(before.kind.rawValue) database \"\(before.name)\"",
            why:
                "release \(release.version) has a \(database.kind.rawValue) database at that path, and would replace it",
            now: "Nothing was changed. To let the release take it over, and keep the file in quarantine, repeat the "
                + "command with --take-over \(database.name)")
    }

    /// The refusal of what is in the way of a database.
    public func obstacle(at path: String, _ database: Database) throws -> MoultError {
        var (old, number) = ("\(store.path(path)).old", 2)
        while try store.look(old) != .nothing { (old, number) = ("\(store.path(path)).old.\(number)", number + 1) }
        return MoultError(
            .occupied, .refused, what: "\(store.path(path)) is in the way",
            why:
                "it is not a regular file, and the \(database.kind.rawValue) database \"\(database.name)\" belongs there",
            now: "Nothing was changed. Move it away, then apply again: "
                + shellLine(["mv", store.path(path), old]))
    }

    /// The refusal of a link that moult did not make.
    public func foreignLink(_ target: String, at path: String, _ database: Database) -> MoultError {
        MoultError(
            .occupied, .refused, what: "\(store.path(path)) is a symbolic link to \(target)",
            why: "moult did not make it, and the \(database.kind.rawValue) database \"\(database.name)\" belongs there",
            now: "Nothing was changed. Put the file itself there, or move the link away, then apply again.")
    }

    /// The refusal of a user's database that lacks what the release's app will ask for.
    public func schemaMisfit(_ lack: String, at place: String) -> MoultError {
        MoultError(
            .userDatabase, .refused,
            what: "the user database \(place) does not fit release \(release.version): \(lack)",
            why: "the release has no migration that brings it there, and its app would fail",
            now: "Nothing was changed. The publisher must add a migration, or say \"schema\": \"app\" "
                + "if the app changes the schema by itself.")
    }

    /// The refusal to reset a database that has a history.
    public func missing(_ database: Database, at path: String) -> MoultError {
        MoultError(
            .missingData, .refused, what: "the \(database.kind.rawValue) database \(store.path(path)) is missing",
            why: "the installed release has it there; a disk that is not mounted looks the same",
            now: "Bring the file back. To start with an empty one instead: moult reset \(database.name) "
                + "--set-user-data-aside")
    }
}

extension Database {
    /// Whether an app or a user writes data to it that cannot be recreated.
    public var holdsAppData: Bool { kind.holdsAppData }
}

extension Manifest {
    /// The refusal of migrations that do not lead to what the release's template is.
    public func migrationMisfit(_ why: String, of database: Database) -> MoultError {
        MoultError(
            .userDatabase, .refused,
            what: "the migrations of \(database.name) do not lead to the database of release \(version)", why: why,
            now: "Nothing was changed. The publisher must correct the migrations, or the template.")
    }
}

extension MoultError {
    /// The refusal of a release that would leave rows behind which the installed one preserves.
    public static func unpreserved(_ database: Database, _ release: Version, _ table: String, _ rows: Int)
        -> MoultError
    {
        MoultError(
            .preserve, .refused,
            what: "release \(release) does not preserve \(counted(rows, "row")) of \(database.name).\(table)",
            why: "the installed release preserves that table, and this one does not",
            now: "Nothing was changed. To leave the rows behind in quarantine, repeat the command with "
                + "--accept-unpreserved")
    }
}

extension MoultError.Code {
    /// A file or link at the path of a database is not the release's to replace.
    public static let occupied = Self(610)
    /// Beside a read-only database is a file that some versions of SQLite would read with it.
    public static let straySidecar = Self(611)
    /// A writable database cannot be made where it belongs.
    public static let userDatabase = Self(520)
    /// A database with data of the app or the user is missing.
    public static let missingData = Self(521)
    /// A staged file does not match the manifest.
    public static let wrongContent = Self(620)
    /// Rows that a release preserves do not fit into it, or another release gives them up.
    public static let preserve = Self(630)
}
