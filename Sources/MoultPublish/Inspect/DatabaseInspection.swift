internal import MoultBasics
internal import MoultFiles
package import MoultSQLite
internal import MoultTrust
internal import StepKit

/// The facts about a database file, read without changing anything.
package struct DatabaseInspection: Sendable, Equatable {
    package var name: String
    package var path: String
    package var size: Int
    /// The digest of the file itself, without its sidecars.
    package var sha256: String
    package var identity: Identity
    /// `sha256:` and the digest of the schema's canonical text, as in manifests.
    package var schemaDigest: String
    package var isWAL: Bool
    package var freePages: Int
    /// The sidecars next to the file: name and size.
    package var sidecars: [Sidecar]
    package var tables: [Table]
    /// The problems, and the differences from the release.
    package var findings: [String]
    /// The parts that could not be checked, with the reason.
    package var notChecked: [String]

    package struct Sidecar: Sendable, Equatable {
        package var name: String
        package var size: Int
    }

    package struct Table: Sendable, Equatable {
        package var name: String
        package var isVirtual: Bool
        package var columns: [String]
        /// The number of rows; nil if they cannot be counted, for the reason in `obstacle`.
        package var rows: Int?
        package var obstacle: String?
    }
}

extension DatabaseInspection {
    /// Reads the file of a part; `counting` gets the name of the table that is read next, and throws to stop.
    init?(_ part: Subject.Part, isWritableCopy: Bool, counting: (String) throws -> Void) throws {
        guard let path = part.path, let facts = try Files.factsThroughLinks(path) else { return nil }
        try DatabaseHeader.requireNoExcess(at: path)
        // Digested before SQLite opens the file: closing another descriptor of a file drops SQLite's locks.
        let sha256 = try SHA256.digest(ofFileAt: path).hex
        let sidecars = try Sidecars.of(path)
        self = try LockFreeReader.into(path, deadline: 600 + Double(facts.size) / 1e6) { connection, _ in
            let identity = try Identity(of: connection)
            let header = try connection.header()
            try counting("its pages")
            let soundness = try connection.soundness(full: true)
            return DatabaseInspection(
                name: part.name, path: path, size: facts.size, sha256: sha256, identity: identity,
                schemaDigest: "sha256:\(try SHA256.digest(of: Array(identity.shape.canonicalText.utf8)).hex)",
                isWAL: header.isWAL, freePages: Int(try connection.int("PRAGMA freelist_count")),
                sidecars: [sidecars.wal, sidecars.sharedMemory, sidecars.journal].compactMap { sidecar in
                    sidecar.map { Sidecar(name: Files.name(of: $0.path), size: $0.facts.size) }
                }, tables: try Self.tables(of: connection, counting: counting),
                findings: Self.cut(facts.size, pageSize: header.pageSize) + soundness.findings,
                notChecked: soundness.notChecked)
        }
        if let declared = part.declared { findings += differences(from: declared, isWritableCopy: isWritableCopy) }
    }

    /// Returns a finding if the last page is incomplete: SQLite treats missing bytes at its end as zeros and reports nothing.
    private static func cut(_ size: Int, pageSize: Int) -> [String] {
        size % pageSize == 0 ? [] : ["it is truncated: \(size) bytes are not a multiple of the page size \(pageSize)"]
    }

    private static func tables(of connection: Connection, counting: (String) throws -> Void) throws -> [Table] {
        let schema = try Schema(of: connection)
        return try schema.withRows.sorted { $0.key < $1.key }.map { key, listed in
            let layout = try schema.table(key)
            var table = Table(
                name: listed.shown, isVirtual: listed.type == "virtual", columns: layout?.columnNames ?? [])
            table.obstacle = listed.name == nil ? "its name is not valid UTF-8" : layout?.obstacle
            if table.obstacle != nil { return table }
            try counting(table.name)
            do { table.rows = try connection.rowCount(table.name) } catch {
                // FTS4 cannot count the rows of an index that stores no text. The details of damage are in the findings.
                guard let sqlite = error.sqlite else { throw error }
                // A view with the text of an index may use a function that only the app has.
                if sqlite.resultCode.primary == .corrupt || AppNeed(error) != nil {
                    table.obstacle = sqlite.message
                } else if !schema.parts(ofIndex: key).isEmpty {
                    table.obstacle = "it stores no text"
                } else {
                    throw error
                }
            }
            return table
        }
    }

    /// Returns the differences between this file and the release; none for a file that an app writes to, which the store itself
    /// assesses.
    private func differences(from declared: Database, isWritableCopy: Bool) -> [String] {
        if isWritableCopy { return [] }
        var differences: [String] = []
        func compare<Value: Equatable>(_ what: String, _ found: Value, _ wanted: Value?) {
            if let wanted, wanted != found {
                differences.append("\(what) is \(found), and the manifest says \(wanted)")
            }
        }
        compare("its size", size, declared.size)
        compare("its SHA-256", sha256, declared.sha256)
        compare("its user_version", Int(identity.userVersion), declared.identity.userVersion)
        if isWAL { differences.append("it is in WAL mode, and SQLite would need sidecars to read it") }
        compare("its application_id", Int(identity.applicationID), declared.identity.applicationID)
        compare("its schema", schemaDigest, declared.identity.schema)
        return differences
    }
}
