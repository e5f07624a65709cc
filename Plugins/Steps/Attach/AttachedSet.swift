internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

/// The databases of a release that share a connection.
struct AttachedSet {
    let group: Manifest.AttachGroup

    var sealed: [Database] { group.others.filter(\.kind.isSealed) }
    var writable: [Database] { [group.main].compactMap(\.self) + group.others.filter { !$0.kind.isSealed } }

    /// The text in the plan for each database, except the main database of the group without a name.
    var described: [String] {
        let main = group.name == nil ? nil : group.main.map { described($0, as: "main") }
        return [main].compactMap(\.self) + group.others.map { described($0, as: $0.attach.alias) }
    }

    private func described(_ database: Database, as alias: String) -> String {
        "\(database.name) as \"\(alias)\"" + (group.name.map { " in group \($0)" } ?? "")
            + (database.kind.isSealed ? " (read-only)" : "")
    }

    func refuseTooMany() throws {
        let connection = try Connection.inMemory()
        let limit = try Int(connection.limit(.attached))
        try connection.close()
        if group.others.count > limit {
            throw MoultError(
                Self.code, .refused,
                what: "the release has \(group.others.count) databases to attach"
                    + (group.name.map { " in group \($0)" } ?? ""),
                why: "SQLite attaches at most \(limit) databases to one connection, and "
                    + "\"attach\": { \"group\": \"NAME\" } moves a database to another connection",
                now: "The publisher must define groups in the draft, or merge databases.")
        }
    }

    /// Throws unless all databases have the same text encoding, which SQLite requires of attached databases.
    func requireSameEncoding(_ files: [(database: Database, path: String)]) throws {
        let encodings = try files.compactMap { file in
            try Connection.encoding(ofFileAt: file.path).map { (file.database.name, $0) }
        }
        guard let (first, encoding) = encodings.first,
            let (other, another) = encodings.first(where: { $0.1 != encoding })
        else { return }
        throw MoultError(
            Self.code, .refused,
            what: "the databases cannot be opened together: \(first) is in \(encoding), and \(other) in \(another)",
            why: "SQLite attaches only databases with the same text encoding",
            now: "Nothing was changed. The publisher must create all of them with the same encoding.")
    }

    /// Opens all files together, read-only.
    func open(_ files: [(database: Database, path: String)]) throws {
        let connection = try Connection.inMemory(
            encoding: files.first.flatMap { try Connection.encoding(ofFileAt: $0.path) })
        for (database, path) in files {
            do {
                try Self.attach(path, database.attach.alias, to: connection)
            } catch {
                // Only the reason in SQLite's message is useful, because the path is that of a staged file.
                throw error.sqlite.map { Self.failed(database, $0.message, error) } ?? error
            }
        }
        try connection.close()
    }

    private static func attach(_ path: String, _ alias: String, to connection: Connection) throws {
        try connection.attach(path, as: alias, access: .immutable)
        // SQLite reads the file only now.
        _ = try connection.query("SELECT count(*) FROM \(quoteIdentifier(alias)).sqlite_schema")
    }

    private static func failed(_ database: Database, _ why: String, _ cause: any Error) -> MoultError {
        MoultError(
            code, what: "\(database.member) cannot be attached as \"\(database.attach.alias)\"", why: why,
            now: "Publish the release again from an undamaged file.", cause: cause)
    }

    /// The databases cannot be opened together.
    static let code = MoultError.Code(540)
}
