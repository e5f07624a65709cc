package import MoultBasics
import MoultFiles

/// Whether the database at a path can be used in its current state, determined without changing it.
package enum Fitness: Sendable {
    /// Usable. `notChecked` has the parts that could not be checked, each with the reason.
    case fits(notChecked: [String])
    /// Neither the file nor a sidecar exists.
    case missing
    /// Not a database, damaged, or not the expected one.
    case unfit(String)
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

    /// Examines a database. `judge` returns a fault of the database, or nil.
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
                connection -> (fault: String?, notChecked: [String]) in
                try connection.requireSize()
                if let fault = try judge(connection) { return (fault, []) }
                guard isWhole || pages == .quick else { return (nil, []) }
                let soundness = try connection.soundness(full: isWhole)
                return (soundness.damage.first, soundness.notChecked)
            }
            return found.fault.map { .unfit($0) } ?? .fits(notChecked: found.notChecked)
        } catch let error as MoultError { return verdict(error) }
    }

    /// Returns whether sidecars exist that no process uses.
    private static func wasLeftOpen(_ path: String) throws -> Bool {
        let sidecars = try Sidecars.of(path)
        guard [sidecars.wal, sidecars.journal].contains(where: { ($0?.facts.size ?? 0) > 0 }) else { return false }
        return try !OpenFiles.isOpenHere(path) && OpenFiles.holders(of: [path]).isEmpty
    }

    private static func verdict(_ error: MoultError) -> Fitness {
        switch error.code {
        case .databaseCorrupt: .unfit(error.why ?? error.what)
        default: .unknown(error)
        }
    }
}
