internal import MoultBasics
internal import MoultCore
internal import StepKit

/// `moult steps`: the steps that this command has.
enum StepsVerb {
    static let command = Command(
        "steps", .besides, "list the steps that this moult has",
        discussion: ["A manifest names other steps than the built-in ones, and says where they come in."],
        usesStore: false,
        examples: [.init("See what manifests can name:", "moult steps")],
        run: run)

    static func run(_ call: Call) throws -> ExitCode {
        call.output.print(StepsReport(steps: call.steps.listed))
        return .done
    }
}

private struct StepsReport: Report {
    let steps: [(step: any Step, phase: Phase?)]

    func write(to page: inout Page) {
        var table = Table(.left, .left, .left, .left)
        table.header("STEP", "PHASE", "FROM", "WHAT IT DOES")
        for (step, phase) in steps {
            table.row(
                "\(step.name)", "\(phase?.rawValue ?? "any")", phase == nil ? "this command" : "built in",
                "\(step.summary)")
        }
        page.table(table)
    }

    var json: JSON {
        [
            "steps": .array(
                steps.map { step, phase in
                    .compact([
                        "name": .string(step.name), "phase": .optional(phase?.rawValue), "builtIn": .bool(phase != nil),
                        "summary": .string(step.summary),
                    ])
                })
        ]
    }
}
