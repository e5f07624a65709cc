internal import MoultBasics
internal import MoultFiles
internal import MoultRows
internal import MoultSQLite
internal import StepKit

/// Plans the change of a shared database: new content is installed, and the app's rows are carried over or kept.
struct SharedContent {
    let database: Database
    let context: PlanContext

    func change() throws -> Change {
        if context.isSetAside(database.path) { return .create(path: database.path, size: database.size) }
        switch try context.occupant(of: database) {
        case .nothing, .generationLink: return .create(path: database.path, size: database.size)
        case .cache: return .replace(Replacement(database, at: database.path, .unfitCache))
        case .missing(let before): throw context.missing(before, at: database.path)
        case .obstacle: throw try context.obstacle(at: database.path, database)
        case .own: return try replace(reason: usual, isOwn: true)
        case .claimed: return try replace(reason: .takenOver, isOwn: false)
        case .foreign: return try replace(reason: .foreign, isOwn: false)
        case .link(let target):
            guard
                context.installed?.databases.contains(where: { $0.path == database.path && $0.kind.isReplaced }) == true
            else { throw context.foreignLink(target, at: database.path, database) }
            try context.requireTrustedFile(database)
            return try replace(reason: usual, isOwn: true)
        }
    }

    private var usual: KeptReason { context.purpose == .rollback ? .rolledBack : .replaced }

    private func replace(reason: KeptReason, isOwn: Bool) throws -> Change {
        let place = context.store.path(database.path)
        let facts = try examine(place, isOwn: isOwn, reason)
        if isOwn, facts.digest == database.sha256 { return .keep(why: "its content is already from this release") }
        var new = Replacement(database, at: database.path, reason)
        new.rows = facts.rows
        return .replace(new)
    }

    /// Facts about the file, read without changing it.
    private struct Facts {
        var digest: String?
        /// Nil if the file is too large to count them in a plan.
        var rows: [RowFate]? = []
    }

    private func examine(_ place: String, isOwn: Bool, _ reason: KeptReason) throws -> Facts {
        // When SQLite first opens an empty file, it deletes a `-wal` beside it, which may have rows.
        if try Files.facts(place)?.size == 0, try Sidecars.of(place).isEmpty { return Facts() }
        do {
            return try NonInvasiveReader.into(place) { connection in
                func facts() throws -> Facts { try self.facts(connection, place, isOwn: isOwn, reason) }
                // In rollback mode, apps cannot commit during a transaction, so a large file is read in several.
                guard try connection.fileSize() <= PlanContext.largestCounted else { return try facts() }
                return try connection.reading(facts)
            }
        } catch let error as MoultError {
            if error.isAboutAccess || [.preserve, .occupied].contains(error.code) { throw error }
            // The whole file is kept, and the rows that can be read are counted when the release is applied.
            if reason == .foreign, error.code == .databaseCorrupt { return Facts() }
            throw MoultError(
                .userDatabase, .refused,
                what: "the \(reason == .takenOver ? "" : "shared ")database \(place) cannot be read",
                why: "\(error.what): \(error.why ?? "no reason was given")",
                now: "Nothing was changed. "
                    + (error.now ?? "To set it aside and start with the shipped content: "
                        + "\(moult: "reset", database.name, "--set-user-data-aside")"),
                cause: error)
        }
    }

    private func facts(_ connection: Connection, _ place: String, isOwn: Bool, _ reason: KeptReason) throws -> Facts {
        var facts = Facts()
        if !isOwn, case .text(let name)? = try connection.scalar(ReleaseMarker.foreign) {
            throw MoultError(
                .occupied, .refused, what: "\(place) has a table or view named \(name)",
                why: "moult stores its own records in a table with that name",
                now: "Nothing was changed. Rename the table or view, also in the app.")
        }
        if try connection.int(ReleaseMarker.isThere) == 1,
            case .text(let digest)? = try connection.scalar(ReleaseMarker.digest)
        {
            facts.digest = digest
        }
        let forecast = RowForecast(database: database, context: context, isOwn: isOwn, digest: facts.digest)
        if isOwn, facts.digest == database.sha256 {
            // The content stays, but the new release may no longer preserve the app's rows in it.
            try forecast.refuseUnpreserved(connection)
            return facts
        }
        if reason == .takenOver {
            var fates = RowFates()
            for fate in try forecast.rows(of: connection, place) {
                fates.add(fate.table) { $0.carried += fate.carried }
            }
            let counts = try AppContent.rowCounts(of: connection, ignoring: ReleaseMarker.tables)
            for (table, rows) in counts.sorted(by: { $0.key < $1.key }) {
                fates.add(table.text) { $0.kept = max(0, rows - $0.carried) }
            }
            facts.rows = fates.all.filter { !$0.isEmpty }
            return facts
        }
        let rows = try forecast.rows(of: connection, place)
        let size = try Files.factsThroughLinks(place)?.size ?? 0
        facts.rows = size > PlanContext.largestCounted ? nil : rows
        return facts
    }
}
