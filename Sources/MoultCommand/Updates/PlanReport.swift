internal import Moult
internal import MoultBasics
internal import MoultFiles
internal import MoultSandbox
internal import StepKit

/// The output of `plan`, and of the dry runs of rollback and reset.
struct PlanReport: Report {
    let plan: Plan
    let store: String
    /// The free space on the store's file system, in bytes; nil if the file system is read-only.
    let free: Int?
    let unfinished: Unfinished
    let details: Bool
    let command: [String]
    /// The validator that would check the databases of the release.
    let examiner: Validator
    let holds: Holds

    /// The changes in sentences, for a user who does not know releases and steps.
    let summary: [String]?

    var isEmpty: Bool { !plan.changesStore && unfinished.isEmpty }

    func write(to page: inout Page) {
        guard plan.changesStore else {
            page.line(
                StyledText(isEmpty ? nothingToDo(plan.to.version.description) : "\(plan.to.version) is installed"))
            page.holds(holds)
            return
        }
        if let summary {
            for sentence in summary { page.wrapped(StyledText(sentence)) }
        } else {
            page.title(of: plan, store: store)
            let lines = PlanLines(plan, details: details)
            for effect in lines.effects { for line in lines.lines(of: effect, on: page.terminal) { page.line(line) } }
        }
        if !plan.calls.isEmpty { page.line() }
        for call in plan.calls { page.wrapped("consumer \(call.text)") }
        if !plan.steps.isEmpty { page.line() }
        for step in plan.steps { page.wrapped("step \(step.step): \(step.text)") }
        page.line()
        if let origin = plan.origin { page.origin(origin, missing: plan.missing) }
        let space: StyledText =
            free.map { "\(ByteCount($0)) free" } ?? "\("its file system is read-only, so apply fails", .warning)"
        let counts: StyledText = summary == nil ? " \(page.terminal.symbols.dot) \(self.counts)" : ""
        page.wrapped("disk: needs \(ByteCount(plan.needs)), " + space + counts)
        if !examiner.isFullyConfined { page.wrapped("guard: \(examiner.guardDescription)") }
        if !untried.isEmpty {
            let deep = ["moult", "plan", "--deep"] + command.dropFirst(2)
            let now: StyledText =
                plan.manifestPath == nil || command.contains("--plan") ? "" : "; to try it now: \(run: deep)"
            page.wrapped("known at apply: what happens to the rows of \(untried.joined(separator: ", "))\(now)")
        }
        page.holds(holds)
        page.line("apply with: \(run: command, .heading)")
    }

    /// The databases whose rows only `apply` or a deep plan tries.
    private var untried: [String] {
        plan.effects.compactMap { effect in
            switch effect.change {
            case .replace(let new) where new.rows == nil: effect.database
            case .migrate(_, _, _, _, nil): effect.database
            default: nil
            }
        }
    }

    private var counts: String {
        let counts = plan.counts
        let parts = [
            (counts.replaced, "to replace"), (counts.added, "to add"), (counts.changed, "to change"),
            (counts.removed, "to take out of service"), (counts.unchanged, "unchanged"),
        ]
        return parts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }.joined(separator: ", ")
    }

    var json: JSON {
        plan.json.setting("free", to: free.map { .size($0) } ?? .null).setting(
            "unfinished", to: .array(unfinished.updates.map { .string($0) })
        ).setting("holds", to: holds.json).setting("guard", to: .string(examiner.guardDescription))
    }
}

extension Page {
    fileprivate mutating func origin(_ origin: Plan.Origin, missing: Int) {
        for note in origin.notes { wrapped("\(note)") }
        let fetch = missing > 0 ? ", \(ByteCount(missing)) to fetch" : ""
        let place = origin.serial.map { "feed: \(origin.place), serial \($0)" } ?? "from: \(origin.place)"
        wrapped("\(place)\(fetch)")
        for file in origin.found { line("found: \(file)") }
        if !origin.then.isEmpty {
            wrapped(
                "then: \(origin.then.map(\.description).joined(separator: ", ")), planned after this release is installed"
            )
        }
    }
}

/// Returns the line for a release that is already installed.
func nothingToDo(_ version: String) -> String { "nothing to do: \(version) is installed" }

extension Call {
    /// Prints a whole plan, and returns the exit status, which shows whether anything would change.
    func show(
        _ plan: Plan, store: String, command: [String], in orchestrator: Orchestrator, summary: [String]? = nil
    ) throws -> ExitCode {
        let (free, unfinished) = (try orchestrator.freeSpace(), try orchestrator.unfinished())
        let examiner = try Validator.available()
        let holds = try orchestrator.holds()
        let report = PlanReport(
            plan: plan, store: store, free: free, unfinished: unfinished, details: output.isVerbose, command: command,
            examiner: examiner, holds: holds, summary: summary)
        output.print(report)
        if output.format == .text {
            output.flush()
            for warning in plan.warnings { output.warn("\(warning)") }
            for sentence in report.unfinished.sentences {
                output.warn(
                    "\(sentence); the next command that writes finishes or undoes it first, and this plan may change")
            }
        }
        return report.isEmpty ? .done : .changes
    }
}

extension Plan {
    static func saved(in file: String) throws -> Plan? {
        try Files.read(file, limit: 1 << 26).map { try Plan(json: JSON(parsing: $0, source: file), source: file) }
    }

    /// Saves the plan. Only an older plan may be overwritten, so that a typo cannot destroy a database.
    func save(to file: String) throws {
        // A device, or a link to one, would be replaced by the file.
        if let facts = try Files.facts(file) {
            // Any error while reading the file means that it is not a plan.
            guard facts.kind == .file, facts.size == 0 || (try? Plan.saved(in: file)) != nil else {
                throw MoultError(
                    .system, what: "cannot save the plan to \(file)", why: "it exists and is not a plan",
                    now: "Choose another file, or print the plan with --json.")
            }
        }
        try OutputFile.write(Array(json.pretty.utf8), to: file)
    }
}
