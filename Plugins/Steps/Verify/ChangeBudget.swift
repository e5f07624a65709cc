internal import MoultBasics
internal import MoultSQLite
internal import StepKit

/// How much each table may shrink or grow by one release: a table that lost half its rows is a mistake, not an update.
struct ChangeBudget {
    let database: Database
    let release: Manifest

    func prove(_ connection: Connection, old path: String) throws {
        let budgets = release.budget.filter { $0.database == database.name }
        guard !budgets.isEmpty else { return }
        let old = try Connection(path: path, access: .immutable)
        for budget in budgets {
            guard try Self.has(budget.table, old) else { continue }
            let before = try Self.count(budget.table, old)
            guard try Self.has(budget.table, connection) else { throw refused(budget, before, nil, "be gone") }
            let after = try Self.count(budget.table, connection)
            if let shrink = budget.shrink, after < before, !shrink.allows(before - after, of: before) {
                throw refused(budget, before, after, "shrink by more than \(shrink)")
            }
            if let grow = budget.grow, after > before, !grow.allows(after - before, of: before) {
                throw refused(budget, before, after, "grow by more than \(grow)")
            }
        }
        try old.close()
    }

    private static func has(_ table: String, _ connection: Connection) throws -> Bool {
        try connection.int(
            "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?1 COLLATE NOCASE", [.text(table)]) > 0
    }

    private static func count(_ table: String, _ connection: Connection) throws -> Int {
        Int(try connection.int("SELECT count(*) FROM \(quoteIdentifier(table))"))
    }

    private func refused(_ budget: Manifest.Budget, _ before: Int, _ after: Int?, _ what: String) -> MoultError {
        MoultError(
            Proof.code, .refused, what: "table \(budget.table) of \(database.name) would \(what)",
            why: after.map { "it has \(before) rows, and \($0) in release \(release.version)" }
                ?? "it has \(before) rows",
            now: "If that is right, publish the release with another budget.")
    }
}
