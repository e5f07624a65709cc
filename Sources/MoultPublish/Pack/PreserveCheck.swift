internal import MoultBasics
internal import MoultRows
internal import MoultSQLite
internal import StepKit

/// Checks `preserve` and `budget` of a draft against their database: a misspelled name would drop user rows, or limit nothing.
struct PreserveCheck {
    let draft: String

    func check(_ database: Database, in file: String) throws {
        guard !database.preserve.isEmpty else { return }
        try checkPolicies(database)
        let connection = try Connection.openGuarded(path: file, access: .readOnly, deadline: 3600)
        let check = SelectionCheck(connection)
        for (index, entry) in database.preserve.enumerated() {
            let rule = RowRule(table: entry.table, conditions: [entry.where], columns: entry.columns)
            guard let fault = try check.faults(in: rule).first else { continue }
            let field =
                switch fault.subject {
                case .table: "table"
                case .column(let old): "columns.\(old)"
                case .condition: "where"
                }
            let why = fault.subject == .condition ? "\"\(entry.where ?? "")\": \(fault.why)" : fault.why
            throw failure(database, index, field, why, fault.suggestion ?? "Correct it in the draft.")
        }
        try connection.close()
        try checkCarrying(database, in: file)
    }

    /// Throws if the rows of a table can never be carried over: every later release would be refused.
    private func checkCarrying(_ database: Database, in file: String) throws {
        // A guarded connection would refuse statements that write. Here they are only prepared, so the connection needs no
        // guard.
        let connection = try Connection(path: file, access: .readOnly)
        for (index, entry) in database.preserve.enumerated() {
            guard let why = try RowTransfer.fault(of: entry.table, in: connection) else { continue }
            throw failure(
                database, index, "table", "rows of \(entry.table) can never be carried over: \(why)",
                "Nothing was written. Change the table, or do not preserve it.")
        }
        try connection.close()
    }

    /// Checks that the tables of a budget are in the database.
    func check(_ budgets: [Manifest.Budget], in file: String) throws {
        guard !budgets.isEmpty else { return }
        let connection = try Connection.openGuarded(path: file, access: .readOnly, deadline: 3600)
        for budget in budgets {
            guard let fault = try SelectionCheck(connection).faults(in: RowRule(table: budget.table)).first else {
                continue
            }
            throw MoultError(
                .packing, .refused, what: "\(draft): budget.\(budget.database).\(budget.table): \(fault.why)",
                now: "Nothing was written. \(fault.suggestion ?? "Correct it in the draft.")")
        }
        try connection.close()
    }

    /// Throws unless all entries for a table have the same rules: they select the rows of the table together.
    private func checkPolicies(_ database: Database) throws {
        var first: [SQLName: Int] = [:]
        for (index, entry) in database.preserve.enumerated() {
            let key = SQLName(entry.table)
            guard let other = first[key] else {
                first[key] = index
                continue
            }
            let earlier = database.preserve[other]
            let fields = [
                ("onConflict", entry.onConflict == earlier.onConflict),
                ("onReject", entry.onReject == earlier.onReject), ("columns", entry.columns == earlier.columns),
            ]
            guard let field = fields.first(where: { !$0.1 })?.0 else { continue }
            throw failure(
                database, index, field, "differs from preserve[\(other)], which is for the same table",
                "Use the same \"\(field)\" in both entries.")
        }
    }

    private func failure(
        _ database: Database, _ index: Int, _ field: String, _ why: String, _ now: Advice
    ) -> MoultError {
        MoultError(
            .packing, .refused, what: "\(draft): databases.\(database.name).preserve[\(index)].\(field): \(why)",
            now: now)
    }
}
