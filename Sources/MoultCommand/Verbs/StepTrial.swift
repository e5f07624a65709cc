internal import Moult
internal import MoultBasics
internal import MoultFiles
internal import StepKit

/// `moult steps test`: tests a program as a step.
enum StepTrial {
    static let with = Option("with", value: .text("JSON"), "For test: the parameters of the step, as in a manifest")
    static let database = Option(
        "database", value: .file("FILE"), repeats: true,
        "For test: a sample database, staged under its name without .db")
    static let before = Option(
        "before", value: .choice("PHASE", of: Phase.allCases.map(\.rawValue)),
        "For test: the phase before which the step runs: check, delete, copy, attach or verify")
    static let after = Option(
        "after", value: .choice("PHASE", of: Phase.allCases.map(\.rawValue)),
        "For test: the phase after which the step runs (default: copy)")

    static func run(_ call: Call, _ program: String) throws -> ExitCode {
        var options = ConformanceKit.Options(executable: try Files.absolute(program))
        options.own = call.steps.listed.first { $0.phase == nil && $0.step.name == program }?.step
        if let text = call.value(with) {
            let json = try JSON(parsing: Array(text.utf8), as: .draft, source: "--with")
            guard json.members != nil else { throw call.wrongUsage("--with must be an object, not \(json.kind)") }
            options.with = json
        }
        options.databases = try call.values(database).map { path in
            guard try Files.factsThroughLinks(path)?.kind == .file else {
                throw call.wrongUsage("no database at \(path)")
            }
            let name = Files.name(of: path)
            let stem = name.hasSuffix(".db") ? String(name.dropLast(3)) : name
            if let fault = PlainName.fault(stem) { throw call.wrongUsage("\"\(stem)\" \(fault)") }
            return (name: stem, path: try Files.absolute(path))
        }
        if call.has(before) { options.when = .before }
        if let phase = (call.value(before) ?? call.value(after)).flatMap({ Phase(rawValue: $0) }) {
            options.phase = phase
        }
        let checks = try ConformanceKit(options) { check in
            call.output.event(
                "check",
                ["check": check.name, "passed": check.finding == nil, "finding": check.finding, "note": check.note])
            call.output.lines { page in
                page.wrapped(
                    "\(check.finding == nil ? page.tick : page.cross) \(check.name)\(check.note.map { " (\($0))" } ?? "")"
                )
                if let finding = check.finding { page.wrapped("\(finding)", indent: 4) }
            }
        }.run()
        let failed = checks.filter { $0.finding != nil }.count
        call.output.event("result", ["checks": checks.count, "failed": failed])
        call.output.lines { page in
            page.line()
            page.wrapped(
                failed == 0
                    ? "\(counted(checks.count, "check")) passed"
                    : "\(failed) of \(counted(checks.count, "check")) failed")
        }
        return failed == 0 ? .done : .failure(.failed)
    }
}
