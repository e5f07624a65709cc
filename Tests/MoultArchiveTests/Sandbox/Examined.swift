import MoultBasics
import MoultFiles
import MoultSandbox
import TestSupport

/// A database that is created with SQL, and the process that examines the database.
struct Examined {
    let scratch: Scratch
    var validation: Validation

    init(_ sql: String, depth: Validation.Depth = .full) throws {
        scratch = try Scratch()
        validation = Validation(name: "food.db", path: scratch.path("food.db"), depth: depth, processor: 60)
        validation.isWritable = true
        try Shell.must(["sqlite3", validation.path], input: sql)
    }

    /// Examines the database with the built command, or with another program instead, and returns the report.
    func report(by program: String? = nil) throws -> ValidationReport {
        let reports = try Validator.process(program ?? BuiltMoult.path()).examine(
            [validation], scratch: scratch.path("aside"))
        guard let report = reports.first else { throw MoultError(.validation, what: "no report") }
        return report
    }

    /// Returns the reason why the database is refused, or a text with the report if it is not refused.
    func refusal(by program: String? = nil) -> String? {
        do {
            let report = try report(by: program)
            return "not refused: \(report)"
        } catch { return (error as? MoultError)?.why ?? "\(error)" }
    }

    /// Returns the result of a query on the database.
    func answer(_ query: String, processor: Int = 60) throws -> ValidationReport.Answer? {
        var asking = self
        asking.validation.queries = [query]
        asking.validation.depth = .header
        asking.validation.processor = processor
        return try asking.report().answers.first
    }

    /// Makes a program that runs instead of the checking process.
    func impostor(_ script: String) throws -> String {
        let path = scratch.path("impostor")
        try Files.writeNew(Array("#!/bin/sh\n\(script)\n".utf8), to: path)
        try Files.setMode(path, 0o755)
        return path
    }
}
