internal import Moult
internal import MoultBasics
internal import MoultSQLite
internal import StepKit

/// `moult attach`: prints SQL that opens the databases in another SQLite shell.
enum AttachVerb {
    static let command = Command(
        "attach", .operators, "print SQL that opens the databases in another SQLite shell",
        discussion: [
            """
            The SQL attaches the databases under their names, or with --group only the databases of that group. It \
            contains the paths of the installed release's files, so print it again after an update.
            """
        ], options: [SQLVerb.group],
        examples: [
            "Print the SQL:": "moult attach",
            "Open a shell with all databases:": "moult attach > set.sql; sqlite3 -init set.sql",
        ], run: run)

    static func run(_ call: Call) throws -> ExitCode {
        let lease = try Store(at: call.store()).heldLease()
        try call.reportUnfinished()
        let items = try lease.databases(of: call.value(SQLVerb.group)).map { database, schema, path in
            let access: Access = database.kind.isSealed ? .immutable : .readWrite
            return (database: database, schema: schema, path: path, uri: try access.uri(for: path))
        }
        let json = JSON.record([
            "generation": lease.generation,
            "databases": items.map {
                JSON.record([
                    "name": $0.database.name, "schema": $0.schema, "kind": $0.database.kind.rawValue, "path": $0.path,
                    "uri": $0.uri,
                ])
            },
        ])
        call.output.print(json: json, evenIfQuiet: true) { page in
            page.line("-- generation \(lease.generation)")
            if let main = items.first(where: { $0.schema == "main" }) {
                page.line(".open \(quoteLiteral(.text(main.uri)))")
            }
            for item in items where item.schema != "main" {
                page.line("ATTACH \(quoteLiteral(.text(item.uri))) AS \(quoteIdentifier(item.schema));")
            }
        }
        return .done
    }
}
