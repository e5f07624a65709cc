package import MoultBasics
import MoultFiles

/// Whether the database at a path can be used in its current state, determined without changing it.
package enum Fitness: Sendable {
    /// Usable. `notChecked` has the parts that could not be checked, each with the reason.
    case fits(notChecked: [String])
    /// Neither the file nor a sidecar exists.
    case missing
    /// Not a database, damaged, or not the expected one. `isDamaged` means that the content itself is: SQLite cannot read all of it.
    case unfit(String, isDamaged: Bool = false)
    /// Unknown for a possibly temporary reason: a lock, a permission, too many open files, a failing disk.
    case unknown(MoultError)

    /// The pages to read in addition to those of the schema.
    package enum Pages: Sendable {
        case none
        /// All pages if a process that was killed has left sidecars, because these may belong to another file; otherwise none.
        case ifLeftOpen
        /// All pages, with SQLite's quick_check.
        case quick
        /// All pages, with integrity_check.
        case full
    }

    /// Examines a database. `judge` returns a fault of the database, or nil, and reads one state of the database. Pages are also read
    /// if it finds a fault, which must not hide worse ones.
    package static func of(
        _ path: String, deadline: Double = 60, pages: Pages = .ifLeftOpen, judge: (Connection) throws -> String?
    ) throws -> Fitness {
        guard let facts = try Files.factsThroughLinks(path) else {
            if try Files.facts(path) != nil { return .unfit("it is a symbolic link to a missing file") }
            guard let stray = try Sidecars.of(path).paths.first else { return .missing }
            return .unfit("the file is missing, and only \(Files.name(of: stray)) is left")
        }
        switch facts.kind {
        case .file: break
        case .directory: return .unfit("it is a directory")
        case .link, .other: return .unfit("it is not a regular file")
        }
        do { try Sidecars.requireReadable(path) } catch let error as MoultError { return .unknown(error) }
        if facts.size == 0 { return .unfit("it is empty") }
        let isWhole = try pages == .full || pages == .ifLeftOpen && wasLeftOpen(path)
        do {
            let found = try NonInvasiveReader.into(path, deadline: deadline) {
                connection -> (fault: String?, damage: String?, notChecked: [String]) in
                try connection.requireSize()
                // One transaction: SQLite looks for sidecars, and locks the file, at the start of each.
                return try connection.reading {
                    let fault = try judge(connection)
                    guard isWhole || pages == .quick else { return (fault, nil, []) }
                    let soundness = try connection.soundness(full: isWhole)
                    return (fault, soundness.damage.first, soundness.notChecked)
                }
            }
            if let damage = found.damage {
                return .unfit([damage, found.fault].compactMap(\.self).joined(separator: "; "), isDamaged: true)
            }
            return found.fault.map { .unfit($0) } ?? .fits(notChecked: found.notChecked)
        } catch let error as MoultError { return verdict(error) }
    }

    private static func wasLeftOpen(_ path: String) throws -> Bool {
        let sidecars = try Sidecars.of(path)
        guard [sidecars.wal, sidecars.journal].contains(where: { ($0?.facts.size ?? 0) > 0 }) else { return false }
        return try !OpenFiles.isOpenHere(path) && OpenFiles.holders(of: [path]).isEmpty
    }

    /// Returns whether SQLite can open the file and accepts its sidecars, so that a transaction can replace its content, and a
    /// copy that SQLite makes has all of the old content. The check changes nothing. A file that is damaged, or whose sidecars
    /// SQLite would discard, is kept exactly as it is, for salvage. Without `checkingPages`, damage outside the schema does not
    /// count: rows of sound tables may be carried over.
    package static func canBeRewritten(_ place: String, checkingPages: Bool = true) throws -> Bool {
        guard try Files.isReadable(place), try Files.isWritable(place) else { return false }
        let sidecars = try Sidecars.of(place)
        // A sidecar that a program of another user has just created says nothing about the file.
        guard try sidecars.paths.allSatisfy(Files.isReadable) else { return true }
        do {
            // When SQLite first opens an empty file, it deletes the sidecars.
            if try Files.factsThroughLinks(place)?.size == 0 { return sidecars.isEmpty }
            guard try sidecars.hasValidJournal(of: place), try sidecars.hasValidWAL() else { return false }
            let tables = try NonInvasiveReader.into(place) { connection -> Set<String>? in
                let tables = try tableNames(connection)
                guard checkingPages else { return tables }
                let header = try connection.header()
                // A truncated file may pass SQLite's checks. If there are frames in a WAL, the file's size proves nothing.
                if (sidecars.wal?.facts.size ?? 0) == 0 { try header.requireSize(connection.fileSize(), path: place) }
                // The sidecars may belong to another file, which only a check of the indexes reveals.
                return try connection.soundness(full: !sidecars.isEmpty, limit: 1).damage.isEmpty ? tables : nil
            }
            guard let tables else { return false }
            return try sidecars.isEmpty || ownTables(place).isSubset(of: tables)
        } catch let error as MoultError {
            // These errors are temporary and say nothing about the file.
            let temporary: [ResultCode] = [.full, .noMemory, .cannotOpen]
            let isTemporary = error.sqlite.map { temporary.contains($0.resultCode.primary) } ?? false
            if isTemporary { throw error }
            // A failing disk.
            if error.code == .databaseIO { return false }
            // A lock, a missing permission or a sidecar of another user says nothing about the file either: SQLite itself decides.
            if error.isAboutAccess || error.code == .databaseRequest { return true }
            return false
        }
    }

    private static func tableNames(_ connection: Connection) throws -> Set<String> {
        Set(
            try connection.query("SELECT name FROM main.sqlite_schema WHERE type = 'table'").compactMap {
                if case .text(let name) = $0[0] { name } else { nil }
            })
    }

    /// Returns the tables in the file when it is read without its sidecars. If one of these tables is missing when the sidecars
    /// are read as well, the sidecars belong to another file. SQLite cannot detect that, and would write their pages over this
    /// file.
    private static func ownTables(_ place: String) throws -> Set<String> {
        do {
            let alone = try Connection(path: place, access: .immutable)
            let names = try tableNames(alone)
            try alone.close()
            return names
        } catch let error as MoultError where error.code == .databaseCorrupt {
            // Without its sidecars, the file is not a database, so it needs them.
            return []
        }
    }

    private static func verdict(_ error: MoultError) -> Fitness {
        switch error.code {
        case .databaseCorrupt: .unfit(error.why ?? error.what, isDamaged: true)
        default: .unknown(error)
        }
    }
}
