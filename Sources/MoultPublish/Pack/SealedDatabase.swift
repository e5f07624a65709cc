internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import MoultSandbox
internal import MoultTrust
internal import StepKit

/// Verifies a finished database, and fills in its entry of the sealed manifest.
struct SealedDatabase {
    let path: String
    let name: String

    let time: CheckTime
    /// A directory for SQLite's temporary files; it must not exist yet.
    let scratch: String
    let shouldStop: (@Sendable () -> Bool)?

    func verify(_ database: inout Database) throws {
        database.size = try Files.facts(path)?.size ?? 0
        let found = try examined(size: database.size)
        try requireEqual("applicationID", database.identity.applicationID, found.applicationID)
        try requireEqual("userVersion", database.identity.userVersion, found.userVersion)
        if let wanted = database.identity.schema, wanted != found.schema {
            throw MoultError(
                .packing, .refused, what: "the database \(name) does not have the schema in the draft",
                why: "its schema is \(found.schema)",
                now: "Correct the draft, or remove \"schema\", which `moult pack` adds.")
        }
        let encoding = try DatabaseHeader(ofOwnFile: path).encoding?.description
        if let encoding { try requireEqual("text encoding", database.identity.encoding, encoding) }
        database.identity = .init(
            applicationID: found.applicationID, userVersion: found.userVersion, schema: found.schema,
            encoding: encoding)
        database.sha256 = try SHA256.digest(ofFileAt: path).hex
        database.proved = .init(check: .full, sqlite: "\(SQLiteVersion.linked)", moult: .moult)
    }

    /// Runs the same checks as a store with `"verify": "full"`. As in a store, they run in a confined process.
    private func examined(size: Int) throws -> ValidationReport.Identity {
        var validation = Validation(name: name, path: path, depth: .full, processor: time.seconds(for: size))
        (validation.isWritable, validation.wantsIdentity, validation.wantsForeignKeys, validation.maxFindings) = (
            true, true, true, 3
        )
        let report = try Validator.available().examine([validation], scratch: scratch) { [shouldStop, name] _ in
            if shouldStop?() == true { throw MoultError(.packing, what: "the check of \(name) was stopped") }
        }.first
        if let findings = report?.findings, let first = findings.first {
            throw MoultError(
                .packing, .refused, what: "the database \(name) is damaged", why: first,
                now: "Repair the database, then pack it again.")
        }
        if let failure = report?.failure { throw failure }
        guard let identity = report?.identity, report?.findings != nil else {
            throw MoultError(
                .packing, what: "the database \(name) cannot be checked",
                why: "the process that checks the database sent an incomplete result", now: "Try again.")
        }
        return identity
    }

    private func requireEqual<Field: Equatable>(_ field: String, _ wanted: Field?, _ found: Field) throws {
        guard let wanted, wanted != found else { return }
        throw MoultError(
            .packing, .refused, what: "the database \(name) does not match the draft",
            why: "its \(field) is \(found), and the draft says \(wanted)", now: "Correct the draft or the database.")
    }
}
