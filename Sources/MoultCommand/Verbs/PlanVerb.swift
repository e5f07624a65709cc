internal import MoultBasics
internal import MoultCore
internal import MoultFiles

/// `moult plan`: what applying a release would do.
enum PlanVerb {
    static let manifest = Argument(.file("MANIFEST"), "The sealed manifest of a release; its bundle lies beside it")
    static let out = Option("out", letter: "o", value: .file(), "Save the plan, for apply --plan FILE")

    static let command = Command(
        "plan", .operators, "show what applying a release would do, and change nothing",
        discussion: [
            "Each line is one change, with a sign before it: see moult help plans. Nothing is changed but FILE."
        ],
        arguments: [manifest], options: [out] + UpdateOptions.all,
        examples: [
            .init("See what a release would change:", "moult plan releases/dailyvalue-2.1.0.json"),
            .init("Save it, have it approved, and do exactly that:", "moult plan -o approved.plan new.json"),
        ],
        exits: [
            .init(.done, "there is nothing to do"), .init(.changes, "there are changes"),
            .init(.failure(.refused), "the release is refused; the message says why"),
        ],
        run: run)

    static func run(_ call: Call) throws -> ExitCode {
        let path = try call.required(manifest)
        let orchestrator = try call.orchestrator()
        let plan = try orchestrator.plan(call.request(path))
        var command = ["moult", "apply", path] + call.storeWords + call.requestWords
        if let file = call.value(out) {
            try save(plan, to: file)
            command = ["moult", "apply", "--plan", file]
        }
        return try call.show(plan, store: call.store(), command: command, in: orchestrator)
    }

    private static func save(_ plan: Plan, to file: String) throws {
        // A device, or a link to one, would be replaced by the file.
        if let facts = try Files.facts(file), facts.kind != .file {
            throw MoultError(
                .system, what: "cannot save the plan to \(file)", why: "something else than a file is there",
                now: "Name a file, or print the plan with --json.")
        }
        try Files.replace(file, with: Array(plan.json.pretty.utf8))
    }
}
