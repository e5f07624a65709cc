internal import MoultBasics
internal import MoultFiles
internal import MoultRows
internal import MoultSQLite

/// Salvages the rows of a copy of a damaged, and possibly malicious, database into a new file in the same directory.
struct SalvageRun: Sendable {
    /// The database's name in errors.
    let name: String
    let copy: String
    let target: String
    /// The limit on processor time, in seconds.
    let processor: Int

    struct Answer: Sendable {
        var reading: Salvage.Reading?
        var failure: MoultError?
        /// Whether the failure is not one of the copy.
        var isExternal = false

        func get() throws -> Salvage.Reading {
            if let reading { return reading }
            let failure = failure ?? MoultError(.validation, what: "the salvage sent no result")
            if isExternal { throw Salvage.TargetFailure(error: failure) }
            throw failure
        }
    }
}

extension SalvageRun: WorkerRequest {
    static let verb = "salvage-1"

    init(_ fields: Fields) throws {
        self.init(
            name: try fields.string("name"), copy: try fields.string("copy"), target: try fields.string("target"),
            processor: try fields.count("processor"))
    }

    var json: JSON { .record(["name": name, "copy": copy, "target": target, "processor": processor]) }

    func protection(scratch: String) throws -> Guard {
        let size = try Files.factsThroughLinks(copy)?.size ?? 0
        return Guard(
            .examiner, reading: .only([copy]),
            writing: Array(Set([scratch, Files.directory(of: copy), Files.directory(of: target)])).sorted(),
            limits: .init(memory: Validator.memory, processor: processor + 5, fileSize: max(1 << 30, 4 * size)))
    }

    func mapping(_ path: (String) -> String) -> SalvageRun {
        SalvageRun(name: name, copy: path(copy), target: path(target), processor: processor)
    }

    func perform() -> Answer {
        do { return Answer(reading: try Salvage.Reader(copy, into: target).read()) } catch {
            let failure = (error as? Salvage.TargetFailure)?.error ?? MoultError(caught: error)
            return Answer(failure: failure, isExternal: Salvage.isExternalFailure(error))
        }
    }

    static func json(of answer: Answer) -> JSON {
        .record([
            "report": answer.reading?.report.json.line, "isDamaged": answer.reading.map(\.isDamaged),
            "failure": answer.failure?.report, "isExternal": answer.isExternal,
        ])
    }

    static func answer(_ fields: Fields) throws -> Answer {
        var answer = Answer(isExternal: try fields.optionalBool("isExternal") ?? false)
        answer.failure = try fields.optionalObject("failure").map { try MoultError(report: $0) }
        if let report = try fields.optionalString("report") {
            answer.reading = .init(
                report: Salvage.Report(json: try JSON(parsing: report, source: "the report of the salvage")),
                isDamaged: try fields.optionalBool("isDamaged") ?? false)
        }
        return answer
    }

    var failure: String { "the rows of \(name) cannot be salvaged" }
    var work: String { "the salvage" }
    var diskLimit: String { "four times the database's size" }
    var advice: Advice { "The old file is kept. Salvage its rows with another program." }
    var timeoutAdvice: Advice { advice }
}
