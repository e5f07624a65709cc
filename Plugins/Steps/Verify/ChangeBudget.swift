internal import MoultBasics
internal import MoultSandbox
internal import StepKit

/// Checks how much each table shrinks or grows in a release: the loss of half of a table's rows is probably a mistake.
struct ChangeBudget {
    let database: Database
    let release: Manifest

    private var budgets: [Manifest.Budget] { release.budget.filter { $0.database == database.name } }
    var tables: [String] { budgets.map(\.table) }

    /// Throws if a table changes more than its budget allows. `rows` has the tables in the order of `tables`, or is empty
    /// without an old database.
    func verify(_ rows: [ValidationReport.Rows]) throws {
        for (budget, rows) in zip(budgets, rows) {
            guard let before = rows.before else { continue }
            guard let after = rows.after else { throw refused(budget, before, nil, "be removed") }
            if let shrink = budget.shrink, after < before, !shrink.allows(before - after, of: before) {
                throw refused(budget, before, after, "shrink by more than \(shrink)")
            }
            if let grow = budget.grow, after > before, !grow.allows(after - before, of: before) {
                throw refused(budget, before, after, "grow by more than \(grow)")
            }
        }
    }

    private func refused(_ budget: Manifest.Budget, _ before: Int, _ after: Int?, _ what: String) -> MoultError {
        MoultError(
            ContentCheck.code, .refused, what: "table \(budget.table) of \(database.name) would \(what)",
            why: after.map { "the table has \(before) rows, and \($0) in release \(release.version)" }
                ?? "the table has \(before) rows",
            now: "If that is intended, publish the release with another budget.")
    }
}
