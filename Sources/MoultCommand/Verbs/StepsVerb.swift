internal import Moult
internal import MoultBasics
internal import MoultFiles
internal import StepKit

/// `moult steps`: lists the steps of this command and a store, shows which programs are trusted, and tests a step.
enum StepsVerb {
    static let action = Argument(
        .choice("ACTION", of: ["list", "trust", "test"]), presence: .optional,
        "The action: list (default), trust or test")
    static let subject = Argument(
        .file("STEP"), presence: .optional, "For trust: the name of the step. For test: the program")

    static let command = Command(
        "steps", .other, "list steps, and trust or test the program of a step",
        discussion: [
            """
            A manifest can add steps before and after the built-in ones. Under "steps" in moult.json, the operator \
            assigns a program to a step and limits what the program may do. moult runs a program only after the \
            operator has trusted it, and only while it is unchanged.
            """,
            """
            `moult steps test` runs a program in a temporary directory. It checks that the program follows the protocol, \
            that planning changes nothing, and that its changes can be repeated, undone and interrupted at any \
            point. In --with, {granted} stands for a directory that the program may write to.
            """,
        ], arguments: [action, subject],
        options: [StepTrial.with, StepTrial.database, StepTrial.before, StepTrial.after, UpdateOptions.wait],
        rules: [.one([StepTrial.before, StepTrial.after], why: "choose one")], changesStore: true,
        examples: [
            "List the steps and the state of their programs:": "moult steps",
            "Trust the current program of a step:": "moult steps trust acme.notify",
            "Test a program before trusting it:":
                "moult steps test --with '{\"file\": \"{granted}/hook.jsonl\"}' ./notify",
        ],
        exits: [
            .done: "done; test: the program passed all checks", .failure(.failed): "test: the program failed a check",
        ], run: run)

    static func run(_ call: Call) throws -> ExitCode {
        switch (call.value(action) ?? "list", call.value(subject)) {
        case ("trust", let name?):
            try trust(call, name)
            return .done
        case ("test", let program?): return try StepTrial.run(call, program)
        case ("list", nil):
            let rows = try all(call).map(StepRow.init)
            call.output.print(json: .record(["steps": rows.map(\.json)])) { page in
                var table = Table(.left, .left, .left, .left)
                table.header("STEP", "PHASE", "FROM", "WHAT IT DOES")
                for row in rows { table.row("\(row.name)", "\(row.phase)", "\(row.source)", "\(row.summary)") }
                page.table(table)
            }
            return .done
        case ("list", _?): throw call.wrongUsage("list takes no step", why: "it shows all steps")
        case (let action, _): throw call.wrongUsage("\(action) needs the argument STEP")
        }
    }

    /// Returns the steps of the command, and those of the store if one is given or found.
    private static func all(_ call: Call) throws -> [Listed] {
        let own = call.steps.listed.map { Listed(step: $0.step, phase: $0.phase, settings: nil) }
        let root: String
        do { root = try call.store() } catch let error as MoultError where error.code == .noStore { return own }
        let settings = try Settings.read(StoreLayout(root: root)).steps
        return own.map { listed in
            var listed = listed
            listed.settings = settings.first { $0.name == listed.step.name }
            return listed
        }
            + settings.filter { one in !own.contains { $0.step.name == one.name } }.map {
                Listed(step: ExternalStep($0), phase: nil, settings: $0)
            }
    }

    private static func trust(_ call: Call, _ name: String) throws {
        let orchestrator = try call.orchestrator()
        let store = try call.snapshot()
        try store.checkSettings()
        guard let settings = try store.settings.steps.first(where: { $0.name == name }), let path = settings.executable
        else {
            throw MoultError(
                .settings, what: "moult.json has no step \(name) with an executable",
                now: "Add it under \"steps\": \"\(name)\": { \"executable\": \"/path/to/program\" }")
        }
        let (sha256, before) = (try StepExecutable(path).sha256, settings.sha256)
        try orchestrator.trustStep(name, sha256: sha256, wait: call.wait)
        let json = JSON.record(["name": name, "executable": path, "sha256": sha256, "before": before])
        call.output.print(json: json) { page in
            page.wrapped("\(name): \(path) \(before == sha256 ? "was already trusted" : "is now trusted")")
            page.wrapped("SHA-256 \(sha256)")
        }
    }

    struct Listed {
        let step: any Step
        let phase: Phase?
        var settings: StepSettings?
    }

    private struct StepRow {
        let name: String
        let phase: String
        let source: String
        let summary: String
        let json: JSON

        init(_ listed: Listed) throws {
            let settings = listed.settings
            name = listed.step.name
            phase = listed.phase?.rawValue ?? settings?.use.map { "\($0.when.rawValue) \($0.phase.rawValue)" } ?? "any"
            let state = try (listed.step as? ExternalStep).map { try ExternalState($0) }
            let rule = settings?.isForbidden == true ? ", forbidden" : settings?.isRequired == true ? ", required" : ""
            source =
                (state.map { "moult.json, \($0.state)" } ?? (listed.phase == nil ? "this command" : "built in")) + rule
            summary = state.map { $0.description?.summary ?? $0.why ?? "" } ?? listed.step.summary
            json = .record([
                "name": name, "phase": listed.phase?.rawValue ?? settings?.use?.phase.rawValue,
                "builtIn": listed.phase != nil, "summary": summary, "state": state?.state,
                "executable": settings?.executable, "sha256": settings?.sha256, "version": state?.description?.version,
                "parameters": state?.description?.parameters, "required": settings?.isRequired == true ? true : nil,
                "forbidden": settings?.isForbidden == true ? true : nil,
            ])
        }
    }
}
