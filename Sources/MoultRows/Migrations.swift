package import MoultBasics
import MoultFiles
package import MoultSQLite

/// The scripts that migrate a database's schema in one transaction; each sets `user_version` to its number.
package struct Migrations: Sendable {
    package struct Script: Sendable {
        package let name: String
        /// The `user_version` that the script sets.
        package let number: Int
        package let sql: String

        package init(name: String, number: Int, sql: String) {
            (self.name, self.number, self.sql) = (name, number, sql)
        }

        package init(name: String, number: Int, file: String) throws {
            guard let bytes = try Files.read(file, limit: 1 << 26) else {
                throw MoultError(.migration, what: "the migration \(name) is missing", why: "no file \(file)")
            }
            guard let sql = String(validating: bytes, as: UTF8.self), !bytes.contains(0) else {
                throw MoultError(
                    .migration, .refused, what: "cannot read the migration \(name)", why: "the file is not valid UTF-8")
            }
            self.init(name: name, number: number, sql: sql)
        }
    }

    package let scripts: [Script]
    /// The time limit for all scripts together, in seconds.
    package var deadline: Double = 600
    /// Whether a table may lose rows; called with its name and its number of rows before and after.
    package var mayShrink: @Sendable (String, Int, Int) -> Bool = { _, _, _ in false }

    /// The path of the database in errors, if the scripts run on a copy of it.
    package var place: String?

    package init(_ scripts: [Script]) { self.scripts = scripts }

    /// Runs the pending scripts and checks the result. **The transaction stays open**, for the caller to commit or roll back. On
    /// an error it is rolled back, and the file is unchanged. `before` is called once the database is locked, before anything
    /// changes.
    package func begin(on connection: Connection, before: () throws -> Void = {}) throws {
        // As in SQLite's procedure for changing tables, foreign keys are checked at the end. They cannot be turned off inside
        // the transaction.
        try connection.set(.foreignKeys, false)
        // Exclusive, so that no reader can delay the commit.
        try connection.execute("BEGIN EXCLUSIVE")
        do {
            try before()
            try run(on: connection)
        } catch {
            try connection.lowerScriptGuard()
            if try connection.isInTransaction { try connection.execute("ROLLBACK") }
            throw error
        }
    }

    private func run(on connection: Connection) throws {
        let path = place ?? connection.path
        let dangling = try connection.references(limit: Self.maxFindings).findings
        let (before, counters) = (try connection.rowCounts(), try RowSequences.all(in: connection))
        var version = Int(try connection.int("PRAGMA user_version"))
        try connection.raiseScriptGuard(deadline: deadline)
        for script in scripts where script.number > version {
            try run(script, on: connection)
            version = script.number
        }
        try connection.lowerScriptGuard()
        // A table that a script has created again counts from its highest remaining row.
        try RowSequences.raise(counters, in: connection)
        // References that were dangling before the scripts ran do not block the release.
        let findings = try connection.references(limit: Self.maxFindings).findings
        if let finding = Soundness.added(findings, since: dangling).first {
            throw Self.failed("they leave a broken foreign key", finding, path: path)
        }
        if let loss = try connection.rowCounts().lossOfRows(since: before, mayShrink: mayShrink) {
            throw Self.loses(loss, path: path)
        }
    }

    private static let maxFindings = 10_000

    private func run(_ script: Script, on connection: Connection) throws {
        let path = place ?? connection.path
        do {
            try connection.forEachStatement(in: script.sql) { statement in
                try statement.run()
                // A conflict clause can roll back the whole transaction.
                guard try connection.isInTransaction else {
                    throw Self.failed("a statement ended the transaction", statement.sql, path: path)
                }
            }
        } catch {
            if let need = AppNeed(error) { throw Self.needsApp(need, script, error, path: path) }
            let error = error as? MoultError
            // The publisher cannot fix a lock, a permission or a full disk.
            if let error, error.isAboutAccess { throw error }
            throw MoultError(
                .migration, .refused, what: "the migration \(script.name) fails on \(path)",
                why: error?.why ?? error.map { "\($0)" },
                now: "Nothing was changed. The publisher of the release must fix the migration"
                    + (error?.code == .guarded
                        ? ": moult runs all migrations in one transaction of its own." : "."),
                cause: error)
        }
        let reached = Int(try connection.int("PRAGMA user_version"))
        guard reached == script.number else {
            throw Self.failed(
                "\(script.name) must set user_version to \(script.number)",
                "user_version is \(reached) after the migration",
                path: path)
        }
    }

    /// Returns the error for migrations that lost rows.
    package static func loses(_ loss: String, path: String) -> MoultError { failed("they lose rows", loss, path: path) }

    /// Returns the error for a script that needs something from the app. It also covers a misspelled function, which SQLite
    /// cannot tell from a function that the app would register.
    private static func needsApp(_ need: AppNeed, _ script: Script, _ error: any Error, path: String) -> MoultError {
        MoultError(
            .migration, .refused, what: "the migration \(script.name) cannot run on \(path)",
            why:
                "the migration needs the \(need), which SQLite does not have; if the app provides it, only the app can run this "
                + "migration: \((error as? MoultError)?.why ?? "\(error)")",
            now:
                "Nothing was changed. Run the migration in the app, or use a release whose migration does without the \(need).",
            cause: error)
    }

    private static func failed(_ what: String, _ why: String, path: String) -> MoultError {
        MoultError(
            .migration, .refused, what: "the migrations of \(path) are invalid: \(what)", why: why,
            now: "Nothing was changed. The publisher of the release must fix them.")
    }
}
