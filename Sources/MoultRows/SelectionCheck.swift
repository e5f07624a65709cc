package import MoultBasics
package import MoultSQLite

/// Checks row rules against a schema: the table and the columns must exist, and the condition must be valid and always select
/// the same rows of the same content.
package struct SelectionCheck {
    package enum Subject: Equatable, Sendable {
        case table
        /// A renamed column, by its old name.
        case column(String)
        case condition
    }

    package struct Fault: Equatable, Sendable, CustomStringConvertible {
        package let subject: Subject
        package let why: String
        package let suggestion: Advice?

        package var description: String { suggestion.map { "\(why). \($0)" } ?? why }
    }

    private let connection: Connection

    package init(_ connection: Connection) { self.connection = connection }

    /// Whether a table belongs to SQLite or moult, and cannot be selected.
    private func isReserved(_ name: SQLName) -> Bool { name.isInternal || name.hasPrefix("moult_") }

    /// Returns why rows of the table cannot be selected; nil if they can.
    package func fault(inTable table: String) throws -> Fault? {
        let name = SQLName(table)
        if isReserved(name) { return Fault(subject: .table, why: "table \"\(table)\" is reserved", suggestion: nil) }
        let all = try tables()
        let found = all.first { SQLName($0.name) == name }
        switch found?.type {
        case "table"?: return nil
        case let type?:
            var kind = "is a \(type)\(type == "view" ? "" : " table")"
            if type == "shadow" {
                kind =
                    try ModuleTables.isPart(table, in: connection)
                    ? "is a part of a virtual table"
                    : "has the name of a part of a virtual table, so SQLite protects it"
            }
            return Fault(
                subject: .table, why: "\"\(table)\" \(kind), and rows can be selected only from ordinary tables",
                suggestion: nil)
        case nil:
            return Fault(
                subject: .table, why: "the database has no table \"\(table)\"",
                suggestion: didYouMean(table, among: try selectableTables()))
        }
    }

    package func selectableTables() throws -> [String] {
        try tables().filter { $0.type == "table" && !isReserved(SQLName($0.name)) }
            .map(\.name)
    }

    /// Returns the columns of a table whose values can be carried over; none if the table does not exist.
    package func columns(of table: String) throws -> [String] {
        try TableLayout.of(SQLName(table), in: connection)?.columns.map(\.name) ?? []
    }

    /// Returns why the new names of renamed columns do not match the table in this schema; nil if they do.
    package func fault(inNewNames columns: [String: String], of table: String) throws -> Fault? {
        guard let layout = try TableLayout.of(SQLName(table), in: connection) else { return try fault(inTable: table) }
        // Several old names may have the same new name, for a column that was renamed more than once.
        for (old, new) in columns.sorted(by: { $0.key < $1.key }) {
            if let fault = Self.fault(inColumn: new, of: layout, subject: .column(old)) { return fault }
        }
        return nil
    }

    private static func fault(inColumn column: String, of table: TableLayout, subject: Subject) -> Fault? {
        if table.place(of: column) != nil { return nil }
        if table.generated.contains(where: { SQLName($0) == SQLName(column) }) {
            return Fault(
                subject: subject, why: "column \"\(column)\" of table \"\(table.name)\" is generated", suggestion: nil)
        }
        return Fault(
            subject: subject, why: "table \"\(table.name)\" has no column \"\(column)\"",
            suggestion: didYouMean(column, among: table.columns.map(\.name)))
    }

    /// Returns why the condition cannot select rows of the table; nil if it can. The table must exist.
    package func fault(inCondition condition: String, of table: String) throws -> Fault? {
        func fault(_ why: String, _ suggestion: Advice? = nil) -> Fault {
            Fault(subject: .condition, why: "the condition \(why)", suggestion: suggestion)
        }
        if let why = Selection.fault(condition) { return fault("is not one expression: \(why)") }
        if let why = TimeFunctions.fault(in: condition) { return fault(why) }
        let authorizer = Authorizer.selecting(from: Set(try tables().map { SQLName($0.name) }))
        do {
            // Without this, SQLite would treat a misspelled column in double quotes as text.
            return try connection.with(.doubleQuotedStringsInDML, false) {
                try connection.with(.doubleQuotedStringsInDDL, false) {
                    try authorizer.guarding(connection) {
                        let sql = "SELECT 1 FROM main.\(quoteIdentifier(table))\(Selection.whereSQL([condition]))"
                        return try connection.withStatement(sql) { statement in
                            if !statement.tail.isEmpty || statement.columnCount != 1 || !statement.isReadOnly {
                                return fault("is not one expression")
                            }
                            return statement.parameterCount == 0 ? nil : fault("has a parameter")
                        }
                    }
                }
            }
        } catch let error as MoultError {
            guard let sqlite = error.sqlite else { throw error }
            switch sqlite.resultCode {
            case .error, .unauthorized: break
            default: throw error
            }
            if let denied = authorizer.denied { return fault("uses \(denied)") }
            return fault("does not compile: \(sqlite.message)", try suggestion(for: sqlite.message, table))
        }
    }

    /// Returns the faults of a rule; if its table is invalid, only that fault. New names of columns are checked against this
    /// schema too.
    package func faults(in rule: RowRule) throws -> [Fault] {
        if let fault = try fault(inTable: rule.table) { return [fault] }
        let names = try fault(inNewNames: rule.columns, of: rule.table).map { [$0] } ?? []
        return try names + rule.conditions.compactMap(\.self).compactMap { try fault(inCondition: $0, of: rule.table) }
    }

    private func tables() throws -> [(name: String, type: String)] {
        try connection.query("PRAGMA main.table_list").filter { $0[0] == .text("main") }
            .map { ($0[1].textOrEmpty, $0[2].textOrEmpty) }
    }

    /// Returns the existing column nearest to one that SQLite cannot find.
    private func suggestion(for message: String, _ table: String) throws -> Advice? {
        let prefix = "no such column: "
        guard message.hasPrefix(prefix), let layout = try TableLayout.of(SQLName(table), in: connection) else {
            return nil
        }
        let name = message.dropFirst(prefix.count).filter { $0 != "\"" }
        let column = name.split(separator: ".").last.map(String.init) ?? String(name)
        return didYouMean(column, among: layout.columns.map(\.name) + layout.generated)
    }
}
