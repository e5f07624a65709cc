package import MoultBasics
package import MoultFiles
import MoultLibc

/// The names and file system facts of the files that SQLite keeps next to a database.
package struct Sidecars: Equatable, Sendable {
    package struct Sidecar: Equatable, Sendable {
        package var path: String
        package var facts: FileFacts
    }

    package var wal: Sidecar?
    package var sharedMemory: Sidecar?
    package var journal: Sidecar?

    /// Returns the paths of the sidecars that SQLite may create for a database.
    package static func beside(_ path: String) -> [String] { SidecarSuffixes.all.map { path + $0 } }

    /// Returns the existing sidecars. A database reached through a symlink has its sidecars next to the file itself.
    package static func of(_ path: String) throws -> Sidecars {
        try ofFile(Files.facts(path)?.kind == .link ? Files.resolvedIfThere(path) : path)
    }

    /// Returns the existing sidecars of a file at a path that must not be a symlink. If another user puts a link there, these are
    /// not the sidecars of its target.
    package static func ofFile(_ path: String) throws -> Sidecars {
        func sidecar(_ suffix: String) throws -> Sidecar? {
            try Files.facts(path + suffix).map { Sidecar(path: path + suffix, facts: $0) }
        }
        return Sidecars(wal: try sidecar("-wal"), sharedMemory: try sidecar("-shm"), journal: try sidecar("-journal"))
    }

    /// Returns the existing sidecars with which SQLite would read other data than that of a read-only file. SQLite looks next to
    /// the file; versions before 3.10 do not resolve symlinks, and look next to the link.
    package static func besideReadOnly(_ file: String, link: String?) throws -> [String] {
        try [file, try Files.target(ofLink: file), link].compactMap(\.self).flatMap(beside).filter {
            try Files.facts($0) != nil
        }
    }

    /// Returns the fault that such a sidecar causes, as a sentence.
    package static func fault(of sidecar: String) -> String {
        "\(sidecar) is next to the database and would change what SQLite reads"
    }

    /// Throws unless this user may read a database and its sidecars.
    package static func requireReadable(_ path: String) throws {
        try Permission.write(path).requireReadable()
        // A program that uses the database may have just removed a sidecar.
        for file in try of(path).paths { try Permission.write(file).requireReadable(ifThere: true) }
    }

    /// A sidecar that SQLite must not use.
    package struct Intruder {
        package var why: String
        /// The command that moves the sidecar away; nil if the sidecar may contain rows of the database.
        package var command: [String]?
        package var advice: Advice
    }

    /// Returns a sidecar that SQLite must not use: something other than a file, or a file of a user who may not write to the
    /// database; otherwise nil.
    package static func intruder(at path: String) throws -> Intruder? { try of(path).intruder(at: path) }

    private func intruder(at path: String) throws -> Intruder? {
        if isEmpty { return nil }
        let database = try Files.factsThroughLinks(path)
        let all = [wal, sharedMemory, journal].compactMap(\.self)
        for sidecar in all {
            guard let why = try sidecar.fault(next: database) else { continue }
            let move = ["mv", sidecar.path, try Files.firstFree("\(sidecar.path).aside")]
            // A sidecar that cannot be examined may have content.
            let isContent = sidecar.facts.kind == .file && ((try? hasContent(of: path)) ?? true)
            guard isContent else {
                return Intruder(
                    why: "\(sidecar.path) \(why)", command: move,
                    advice: "Find out which program created it, then move it away: \(run: move)")
            }
            // The app's rows may be in it: a service that now runs as another user leaves such files behind.
            let files = all.filter { $0.facts.kind == .file }.map(\.path)
            let give =
                (geteuid() == 0 ? [] : ["sudo"]) + ["chown", "--reference=\(Files.resolvedIfThere(path))"] + files
            return Intruder(
                why: "\(sidecar.path) \(why)", command: nil,
                advice:
                    "The sidecar may contain rows of the database. If the app that uses the database wrote it, run: "
                    + "\(run: give). If another program wrote it, move it away: \(run: move)")
        }
        return nil
    }

    /// Returns whether a WAL or a hot journal belongs to the file, so that the database is incomplete without it.
    private func hasContent(of path: String) throws -> Bool {
        if let wal, wal.facts.size > 32, try hasValidWAL() { return true }
        return try hasHotJournal() && hasValidJournal(of: path)
    }

    /// Returns the sidecars of a database. Throws if SQLite would open one that it must not use.
    static func requireOwn(_ path: String) throws -> Sidecars {
        let sidecars = try of(path)
        guard let intruder = try sidecars.intruder(at: path) else { return sidecars }
        throw MoultError(
            .databaseRequest, .refused, what: "cannot open database \(path)", why: intruder.why, now: intruder.advice)
    }

    /// Returns whether a sidecar may belong to a user who may not write to the database: through the sidecar, that user could
    /// change the database. If only the group of the database may write to it, the owner of the sidecar must be a member. Not
    /// every system lists the members, so this depends on the directory: every user who may create files in it must be allowed to
    /// write to the database.
    static func isForeign(_ sidecar: Sidecar, to database: FileFacts) throws -> Bool {
        if [0, geteuid(), database.owner].contains(sidecar.facts.owner) || database.mode & 0o002 != 0 { return false }
        guard database.mode & 0o020 != 0 else { return true }
        let directory = Files.directory(of: sidecar.path)
        guard let facts = try Files.factsThroughLinks(directory) else { return true }
        return facts.mode & 0o002 != 0 || facts.mode & 0o020 != 0 && facts.group != database.group
    }

    /// Returns whether a journal exists that may have to be rolled back. A journal with an empty or zeroed header belongs to a
    /// finished transaction; SQLite leaves such journals in some modes.
    package func hasHotJournal() throws -> Bool {
        guard let journal, journal.facts.size > 0, let file = try Descriptor.ifThere(journal.path, .read) else {
            return false
        }
        var first: UInt8 = 0
        let count = try withUnsafeMutableBytes(of: &first) { try file.read(into: $0) }
        try file.close()
        return count == 1 && first != 0
    }

    /// The first bytes of a journal with content. They are zeroed once the transaction ends.
    private static let journalMagic: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]

    /// Returns whether a journal starts like one that SQLite would roll back.
    package func hasJournalHeader() throws -> Bool {
        try journal.map { try Self.start(of: $0, 8) == Self.journalMagic } ?? false
    }

    /// Returns whether a hot journal has a valid header that fits the database; true without a hot journal.
    package func hasValidJournal(of path: String) throws -> Bool {
        guard let journal, try hasHotJournal() else { return true }
        let bytes = try Self.start(of: journal, 28)
        guard bytes.count == 28, bytes.starts(with: Self.journalMagic) else { return false }
        func number(at offset: Int) -> Int { bytes[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) } }
        // Other access would require that all sidecars are valid.
        let connection = try Connection(path: path, access: .immutable)
        let pageSize = try connection.header().pageSize
        try connection.close()
        // During a transaction, the file may become longer, but never shorter.
        let pages = try (Files.factsThroughLinks(path)?.size ?? 0) / max(1, Int(pageSize))
        return number(at: 24) == Int(pageSize) && number(at: 16) <= pages
    }

    /// Returns whether a WAL has a valid header that fits its first frame; true without a WAL.
    package func hasValidWAL() throws -> Bool {
        guard let wal, wal.facts.size > 0 else { return true }
        let bytes = try Self.start(of: wal, 56)
        guard bytes.count >= 32, bytes.starts(with: [0x37, 0x7f, 0x06]), bytes[3] & 0xfe == 0x82 else { return false }
        // Each frame repeats the salts of the header.
        return bytes.count < 56 || bytes[16..<24] == bytes[40..<48]
    }

    private static func start(of sidecar: Sidecar, _ count: Int) throws -> [UInt8] {
        guard sidecar.facts.kind == .file, let file = try Descriptor.ifThere(sidecar.path, .read) else { return [] }
        var bytes = [UInt8](repeating: 0, count: count)
        let read = try bytes.withUnsafeMutableBytes { try file.read(into: $0) }
        try file.close()
        return Array(bytes.prefix(read))
    }

    package var isEmpty: Bool { paths.isEmpty }

    package var paths: [String] { [wal, sharedMemory, journal].compactMap { $0?.path } }
}

extension Sidecars.Sidecar {
    /// Returns why SQLite must not use the sidecar; nil if it may. SQLite would block forever on a pipe, and would write to the
    /// target of a symlink.
    fileprivate func fault(next database: FileFacts?) throws -> String? {
        let use = "and SQLite would use it as part of the database"
        switch facts.kind {
        case .link: return "is a symbolic link, \(use)"
        case .directory: return "is a directory, \(use)"
        case .other: return "is not a regular file, \(use)"
        case .file:
            guard let database, try Sidecars.isForeign(self, to: database) else { return nil }
            let owner = "belongs to user \(Files.userName(facts.owner))"
            if database.mode & 0o020 != 0 {
                return
                    "\(owner), and users who may not write to the database can create files in its directory"
            }
            return "\(owner), but only user \(Files.userName(database.owner)) may write to the database"
        }
    }
}
