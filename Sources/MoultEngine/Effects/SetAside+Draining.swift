internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import MoultStore
internal import StepKit

extension SetAside {
    /// Returns the number of rows in each table, for the record. The numbers are only informative, so this returns nil if the
    /// rows cannot be counted.
    static func rows(_ place: String) throws -> [SQLName: Int]? {
        do {
            let counts = try NonInvasiveReader.into(place) {
                try AppContent.rowCounts(of: $0, ignoring: ReleaseMarker.tables)
            }
            return counts.filter { $0.value > 0 }
        } catch let error as MoultError {
            if error.code == .interrupted { throw error }
            return nil
        }
    }

    /// Returns whether SQLite can open the file and accepts its sidecars, and, if draining would change the file, finds no
    /// damage in it. The check changes nothing.
    ///
    /// Files that SQLite would discard may contain the only copy of rows, and a damaged file is kept exactly as it is, for
    /// salvage.
    static func isReadable(_ place: String) throws -> Bool {
        guard try Files.isReadable(place) else { return false }
        let sidecars = try Sidecars.of(place)
        guard try sidecars.paths.allSatisfy(Files.isReadable) else { return false }
        do {
            guard try sidecars.hasValidJournal(of: place), try sidecars.hasValidWAL() else { return false }
            let tables = try NonInvasiveReader.into(place) { connection -> Set<String>? in
                let tables = try tableNames(connection)
                // Without WAL mode and sidecars, draining changes no byte, whatever the pages contain.
                let header = try connection.header()
                guard header.isWAL || !sidecars.isEmpty else { return tables }
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
            if error.outcome == .busy || isTemporary { throw error }
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

    /// Drains the file and holds it; returns false if that is impossible, so that the whole set must be set aside.
    static func drain(_ file: DrainedFile) throws -> Bool {
        let place = file.path
        do {
            try file.hold()
            return true
        } catch let error as MoultError {
            if error.outcome == .busy {
                // Sidecars that SQLite neither reads nor removes cause the same error as another process.
                let files = try [place] + Sidecars.of(place).paths
                guard try !OpenFiles.isOpenHere(place), try OpenFiles.holders(of: files).isEmpty else {
                    throw InUse.error(place, advice: Self.advice)
                }
                return false
            }
            // SQLite also reports a database as read-only if the disk has no room for its `-shm`.
            let isDenied = try !Files.isWritable(place) || !Files.isWritable(Files.directory(of: place))
            let closed: [ResultCode] = [.corrupt, .notADatabase] + (isDenied ? [.readOnly, .cannotOpen] : [])
            guard error.sqlite.map({ closed.contains($0.resultCode.primary) }) ?? true else { throw error }
            return false
        }
    }

    static let advice = "Stop that program, and try again: its writes until then would also be set aside."
}
