internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import MoultTrust
internal import StepKit

/// Proves one staged file against what the manifest says of it. The file is hostile until all of this has passed.
struct Proof {
    let database: Database
    let path: String
    let release: Manifest

    /// A staged file is not what the release promises.
    static let code = MoultError.Code(620)
    /// A check that takes longer than this was made to.
    static let deadline: Double = 600

    func prove(comparedWith old: String?) throws {
        // Bundle members were digested while they were unpacked; a file in place is read only if the release asks for it.
        if database.place == .inPlace, database.verify == .full { try proveDigest() }
        let header = try guarded(.immutable)
        let isWAL = try header.header().isWAL
        try header.close()
        if isWAL {
            throw failed(
                "it is in WAL mode, and would need sidecars to be read",
                now: "Publish it in rollback mode: PRAGMA journal_mode=DELETE.")
        }
        // SQLite does not even load the CHECK constraints of a file that it cannot write. What was staged is ours, and
        // the guard lets nothing write to it.
        let connection = try guarded(database.place == .inPlace ? .immutable : .readWrite)
        try proveIdentity(connection)
        if database.place == .generation || database.verify == .full { try proveHealth(connection) }
        try GoldenQueries(database: database, release: release).prove(on: connection)
        if let old { try ChangeBudget(database: database, release: release).prove(connection, old: old) }
        try connection.close()
    }

    private func guarded(_ access: Access) throws -> Connection {
        do { return try Connection.openGuarded(path: path, access: access, deadline: Self.deadline) } catch {
            throw MoultError(
                Self.code, what: "\(database.member) is no sound database",
                why: (error as? MoultError)?.why ?? "\(error)",
                now: "Publish the release again from a sound file.", cause: error)
        }
    }

    private func proveDigest() throws {
        let digest = try SHA256.digest(ofFileAt: path).hex
        if digest != database.sha256 {
            throw failed(
                "its SHA-256 is \(digest.prefix(8))…, and the manifest says \(database.sha256.prefix(8))…",
                now: "Build and seal it again, both together.")
        }
    }

    private func proveIdentity(_ connection: Connection) throws {
        let wanted = database.identity
        guard wanted != .init() else { return }
        let found = try Identity(of: connection)
        if let id = wanted.applicationID, id != Int(found.applicationID) {
            throw failed("its application_id is \(found.applicationID), and the manifest says \(id)")
        }
        if let version = wanted.userVersion, version != Int(found.userVersion) {
            throw failed("its user_version is \(found.userVersion), and the manifest says \(version)")
        }
        if let schema = wanted.schema {
            let digest = "sha256:\(try SHA256.digest(of: Array(found.shape.canonicalText.utf8)).hex)"
            if digest != schema {
                throw failed(
                    "its schema is another one than the manifest says (\(digest.prefix(15))…, not \(schema.prefix(15))…)"
                )
            }
        }
    }

    private func proveHealth(_ connection: Connection) throws {
        var findings = try database.verify == .full ? connection.fullCheck() : connection.quickCheck()
        if database.verify == .full, findings.isEmpty { findings = try connection.foreignKeyCheck() }
        guard let first = findings.first else { return }
        throw failed(findings.count == 1 ? first : "\(first), and \(counted(findings.count - 1, "more finding"))")
    }

    private func failed(_ why: String, now: String = "Publish the release again with the right file.") -> MoultError {
        MoultError(Self.code, what: "\(database.member) is not what the release promises", why: why, now: now)
    }
}
