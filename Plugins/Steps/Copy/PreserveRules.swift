internal import MoultBasics
internal import MoultSQLite
internal import StepKit

/// Whether a release's `preserve` fits its own schema: a misspelled name would leave the app's rows behind.
struct PreserveRules {
    let database: Database
    let release: Version

    func prove(_ file: String) throws {
        guard database.kind.isReplaced, !database.preserve.isEmpty else { return }
        let connection = try Connection(path: file, access: .immutable)
        let check = SelectionCheck(connection)
        for (index, entry) in database.preserve.enumerated() {
            let rule = RowRule(table: entry.table, conditions: [entry.where], columns: entry.columns)
            guard let fault = try check.faults(in: rule).first else { continue }
            throw MoultError(
                .preserve, .refused,
                what: "databases.\(database.name).preserve[\(index)] of release \(release) does not fit its own schema",
                why: fault.subject == .condition ? "\"\(entry.where ?? "")\": \(fault.why)" : fault.why,
                now: "Nothing was changed. The publisher must correct it and release again.")
        }
        try connection.close()
    }
}
