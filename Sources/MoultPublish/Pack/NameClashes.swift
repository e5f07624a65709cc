internal import MoultBasics
internal import MoultSQLite
internal import StepKit

/// Warnings about tables that several databases of one connection have: a query without a database name reads the first of them.
struct NameClashes {
    let manifest: Manifest
    let directory: String

    func warnings() throws -> [String] {
        try manifest.groups.flatMap { group in
            try clashes(in: [group.main].compactMap(\.self) + group.others, main: group.main?.name)
        }
    }

    private func clashes(in databases: [Database], main: String?) throws -> [String] {
        var holders: [SQLName: [Database]] = [:]
        var names: [(SQLName, String)] = []
        for database in databases {
            for name in try tables(of: database) {
                if holders[SQLName(name)] == nil { names.append((SQLName(name), name)) }
                holders[SQLName(name), default: []].append(database)
            }
        }
        return names.compactMap { key, name in
            let all = holders[key] ?? []
            // If the names of all others are qualified, a name alone means the table of the first one.
            guard let first = all.first, all.dropFirst().contains(where: { !$0.attach.isQualified }) else { return nil }
            let schemas = all.map { "\"\($0.name == main ? "main" : $0.attach.alias)\"" }
            return "table \(name) is in \(listed(schemas)): a query without a database name reads \(schemas[0]). "
                + "If the app always writes the database name, add to each database except \(first.name): "
                + "\"attach\": { \"qualified\": true }"
        }
    }

    private func listed(_ names: [String]) -> String {
        guard names.count > 3 else { return names.joined(separator: " and in ") }
        return names.prefix(2).joined(separator: ", ") + " and in \(names.count - 2) other databases"
    }

    private func tables(of database: Database) throws -> [String] {
        let connection = try Connection(path: "\(directory)/\(database.member)", access: .immutable)
        let rows = try connection.query(
            "SELECT name FROM sqlite_schema WHERE type IN ('table','view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
                + "AND name NOT LIKE 'moult\\_%' ESCAPE '\\'")
        try connection.close()
        return rows.compactMap { if case .text(let name)? = $0.first { name } else { nil } }
    }
}
