import CSQLite
import MoultBasics

extension Connection {
    /// Attaches a file through a URI with this access. Creates the file only with `.readWriteCreate`.
    package func attach(_ other: String, as name: String, access: Access) throws {
        authorizer?.isAttaching = true
        defer { authorizer?.isAttaching = false }
        let doing = "attach \(other) as \(name) to \(path)"
        if ["main", "temp"].contains(name.lowercased()) {
            throw MoultError(
                .databaseRequest, .refused, what: "cannot \(doing)", why: "SQLite already has a database `\(name)`",
                now: "Choose another name.")
        }
        let attached = try attachedNames
        let limit = try limit(.attached)
        if attached.count >= limit {
            throw MoultError(
                .databaseRequest, .refused, what: "cannot \(doing)",
                why: "\(attached.count) databases are attached, and the limit is \(limit)")
        }
        let file = try OpenableFile(other, access)
        if clock != nil { try allowValues(of: Int(ValueLimit.of(file))) }
        try withStatement("ATTACH ?1 AS ?2") { statement in
            try statement.bind([.text(access.uri(for: other)), .text(name)])
            do {
                try statement.run()
            } catch let error as MoultError {
                guard var cause = error.sqlite else { throw error }
                // The attached file is the one that cannot be opened.
                if case .cannotOpen = cause.resultCode { cause.path = other }
                throw MoultError(cause, doing: doing)
            }
        }
    }

    /// Detaches a file. Fails inside a transaction, or while a statement uses it.
    package func detach(_ name: String) throws {
        authorizer?.isAttaching = true
        defer { authorizer?.isAttaching = false }
        try withStatement("DETACH ?1") { statement in
            try statement.bind([.text(name)])
            try statement.run()
        }
    }

    package var attachedNames: [String] {
        get throws {
            try query("PRAGMA database_list").compactMap { row in
                guard case .text(let name) = row[1], name != "main", name != "temp" else { return nil }
                return name
            }
        }
    }
}
