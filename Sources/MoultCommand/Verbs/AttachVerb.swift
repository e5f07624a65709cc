internal import Moult
internal import MoultBasics
internal import MoultSQLite
internal import StepKit

/// `moult attach`: how any SQLite shell opens the same databases.
enum AttachVerb {
    static let command = Command(
        "attach", .operators, "print SQL that opens the databases in another SQLite shell",
        discussion: [
            """
            It attaches all databases of the store under their names. It names the files of the installed release, \
            so print it again after an update.
            """
        ],
        examples: [
            .init("Print the SQL:", "moult attach"),
            .init("Open a shell with all databases:", "moult attach > set.sql; sqlite3 -init set.sql"),
        ],
        run: run)

    static func run(_ call: Call) throws -> ExitCode {
        let lease = try Store(at: call.store()).heldLease()
        let items = try lease.databases().map { database, schema, path in
            AttachReport.Item(
                name: database.name, schema: schema, kind: database.kind, path: path,
                uri: try (database.kind.isSealed ? Access.immutable : .readWrite).uri(for: path))
        }
        call.output.print(AttachReport(generation: lease.generation, items: items))
        return .done
    }
}

private struct AttachReport: Report {
    struct Item {
        let name: String
        let schema: String
        let kind: Database.Kind
        let path: String
        let uri: String
    }

    let generation: String
    let items: [Item]

    func write(to page: inout Page) {
        page.line("-- generation \(generation)")
        if let main = items.first(where: { $0.schema == "main" }) {
            page.line(".open \(quoteLiteral(.text(main.uri)))")
        }
        for item in items where item.schema != "main" {
            page.line("ATTACH \(quoteLiteral(.text(item.uri))) AS \(quoteIdentifier(item.schema));")
        }
    }

    var json: JSON {
        [
            "generation": .string(generation),
            "databases": .array(
                items.map {
                    [
                        "name": .string($0.name), "schema": .string($0.schema), "kind": .string($0.kind.rawValue),
                        "path": .string($0.path), "uri": .string($0.uri),
                    ]
                }),
        ]
    }
}
