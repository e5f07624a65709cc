import MoultBasics
import MoultFiles
import MoultSandbox
import TestSupport

/// A database made of SQL, and the built command as the process that examines it.
struct Examined {
    let scratch: Scratch
    var exam: Validation

    init(_ sql: String, depth: Validation.Depth = .full) throws {
        scratch = try Scratch()
        exam = Validation(name: "food.db", path: scratch.path("food.db"), depth: depth, processor: 60)
        exam.isWritable = true
        try Shell.must(["sqlite3", exam.path], input: sql)
    }

    /// By the built command, or by another program in its place.
    func report(by program: String? = nil) throws -> ValidationReport {
        let reports = try Validator.process(program ?? BuiltMoult.path()).examine(
            [exam], scratch: scratch.path("aside"))
        guard let report = reports.first else { throw MoultError(.exam, what: "no report") }
        return report
    }

    /// Why it is refused.
    func refusal(by program: String? = nil) -> String? {
        do {
            let report = try report(by: program)
            return "not refused: \(report)"
        } catch { return (error as? MoultError)?.why ?? "\(error)" }
    }

    /// What the database answers to a query.
    func answer(_ query: String, processor: Int = 60) throws -> ValidationReport.Answer? {
        var asking = self
        asking.exam.queries = [query]
        asking.exam.depth = .header
        asking.exam.processor = processor
        return try asking.report().answers.first
    }

    /// A program in the place of the examiner.
    func impostor(_ script: String) throws -> String {
        let path = scratch.path("impostor")
        try Files.writeNew(Array("#!/bin/sh\n\(script)\n".utf8), to: path)
        try Files.setMode(path, 0o755)
        return path
    }
}
