internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

/// A shared database: new content comes in, what the app wrote and the release preserves is carried over.
struct SharedContent {
    let database: Database
    let context: PlanContext

    /// What is known of the living file, found out without changing it.
    private struct Facts {
        let digest: String?
        let pageSize: Int
        let isWAL: Bool
        let preserved: [(table: String, rows: Int)]
    }

    func change() throws -> Change {
        switch try context.store.look(database.path) {
        case .nothing, .link: return .create(path: database.path, size: database.size)
        case .directory, .other:
            throw MoultError(
                Template.code, .refused, what: "\(path) is in the way",
                why: "it is no file, and the shared database \"\(database.name)\" belongs there",
                now: "Move it away, and apply again.")
        case .file: break
        }
        let facts = try examine()
        if facts.digest == database.sha256 { return .keep(why: "its content is of this release already") }
        let (way, why) = try way(facts)
        let rows = facts.preserved.map { "\(counted($0.rows, "row")) of \($0.table) carried over" }
        return .replace(
            path: database.path, member: database.member, size: database.size, way: way,
            why: ([why] + rows).joined(separator: "; "))
    }

    private var path: String { context.store.path(database.path) }

    private func examine() throws -> Facts {
        do { return try Look.into(path) { try facts($0) } } catch {
            if let error = error as? MoultError, error.outcome == .busy { throw error }
            throw MoultError(
                Template.code, .refused, what: "the shared database \(path) cannot be read", why: "\(error)",
                now: "Nothing was changed. See what is wrong with it before its content is replaced.", cause: error)
        }
    }

    private func facts(_ connection: Connection) throws -> Facts {
        let header = try connection.header()
        let digest: String? =
            if try connection.int(ReleaseMarker.isThere) == 1,
                case .text(let text)? = try connection.scalar(ReleaseMarker.digest)
            { text } else { nil }
        let preserved = try database.preserve.compactMap { preserve -> (String, Int)? in
            let there = try connection.int(
                "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?1 COLLATE NOCASE",
                [.text(preserve.table)])
            guard there > 0 else { return nil }
            let condition = preserve.where.map { " WHERE (\($0))" } ?? ""
            return (
                preserve.table,
                Int(try connection.int("SELECT count(*) FROM \(quoteIdentifier(preserve.table))\(condition)"))
            )
        }
        return Facts(digest: digest, pageSize: header.pageSize, isWAL: header.isWAL, preserved: preserved)
    }

    /// The way is chosen from what is known, and the plan says why.
    private func way(_ facts: Facts) throws -> (Database.Replacement, String) {
        if let forced = database.replace { return (forced, "as the release says") }
        if try OpenFiles.isOpenHere(path) { return (.live, "this process has it open") }
        guard let holder = try OpenFiles.holders(of: [path]).first else { return (.exchange, "nobody has it open") }
        return (.live, "\(holder.description) has it open")
    }
}
