internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import MoultTrust
internal import StepKit

/// Proves a finished database, and writes into its entry what the sealed manifest says of it.
struct SealedDatabase {
    let path: String
    let name: String

    func prove(_ database: inout Database) throws {
        let connection = try Connection.openGuarded(path: path, access: .readWrite, deadline: 3600)
        let findings = try connection.fullCheck(limit: 3) + connection.foreignKeyCheck(limit: 3)
        if let first = findings.first {
            throw MoultError(
                .packing, .refused, what: "the database \(name) is not sound", why: first,
                now: "Mend it, and pack again; \(counted(findings.count, "finding")) in all.")
        }
        let found = try Identity(of: connection)
        try connection.close()
        try agree("applicationID", database.identity.applicationID, Int(found.applicationID))
        try agree("userVersion", database.identity.userVersion, Int(found.userVersion))
        let schema = "sha256:\(try SHA256.digest(of: Array(found.shape.canonicalText.utf8)).hex)"
        if let wanted = database.identity.schema, wanted != schema {
            throw MoultError(
                .packing, .refused, what: "the database \(name) has another schema than the draft says",
                why: "its schema is \(schema)", now: "Correct the draft, or leave \"schema\" to pack.")
        }
        database.identity = .init(
            applicationID: Int(found.applicationID), userVersion: Int(found.userVersion), schema: schema)
        database.size = try Files.facts(path)?.size ?? 0
        database.sha256 = try SHA256.digest(ofFileAt: path).hex
    }

    private func agree(_ field: String, _ wanted: Int?, _ found: Int) throws {
        if wanted == nil || wanted == found { return }
        throw MoultError(
            .packing, .refused, what: "the database \(name) is not what the draft says",
            why: "its \(field) is \(found), and the draft says \(wanted ?? 0)",
            now: "Correct the draft or the database.")
    }
}
