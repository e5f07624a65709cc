internal import MoultBasics
internal import MoultFiles
internal import StepKit

extension StepTestBench {
    func run() throws {
        try makeStore()
        if let own = options.own { return try checkStep(own) }
        var (known, answered): (StepExecutable?, StepDescription?)
        checkWithNote("program") {
            known = try StepExecutable(Files.absolute(options.executable))
            return known.map { "SHA-256 \($0.sha256)" }
        }
        guard let program = known else { return }
        checkWithNote("handshake") {
            answered = try describe(program, .object([]))
            return answered.map { "\($0.name) \($0.version): \($0.summary)" }
        }
        guard let description = answered else { return }
        check("unknown fields") {
            let other = try self.describe(program, ["fieldOfALaterVersion": ["a": 1]])
            if other != description { throw Finding("an unknown field in the request changes the step's description") }
        }
        checkRefusals(program, description)
        try checkStep(step(description, program))
    }

    private func checkStep(_ step: any Step) throws {
        guard var context = try checkChanges(of: step) else { return }
        if try occupy() { context = try checkChanges(of: step) ?? context }
        check("clean") { try step.clean(.done, ApplyContext(plan: context, staging: staging)) }
    }

    /// Checks the plan of the step and each change in it; returns nil if the step did not plan.
    private func checkChanges(of step: any Step) throws -> PlanContext? {
        var context = try planContext()
        var planned: [Effect] = []
        let isPure = checkWithNote("plan is pure\(round.suffix)") {
            do {
                let level: String
                (planned, level) = try plan(step, context)
                return level
            } catch let error as MoultError where round == .occupied && error.code == .stepRefused {
                return "refused with an error"
            }
        }
        if !isPure { return nil }
        if planned.isEmpty, round == .occupied { return nil }
        checkWithNote("plan twice\(round.suffix)") {
            if try self.plan(step, context).effects != planned {
                throw Finding("the same request returned a different plan")
            }
            return counted(planned.count, "effect")
        }
        context.planned = planned
        prepare(step, planned, context)
        for effect in planned where effect.isCustom {
            if let step = step as? ExternalStep {
                apply(step, effect, context)
            } else if let step = step as? any CustomStep {
                applyOwn(step, effect, context)
            }
        }
        return context
    }

    private func conversation(_ program: StepExecutable, _ scratch: String, _ name: String) -> StepConversation {
        StepConversation(
            step: name, executable: program, rights: StepRights(plans: true), scratch: scratch,
            seconds: options.timeout)
    }

    private func describe(_ program: StepExecutable, _ more: JSON) throws -> StepDescription {
        try Files.withScratchDirectory { scratch in
            let members = JSON.object([.init("protocols", [1])] + (more.members ?? []))
            return try StepDescription(conversation(program, scratch, "under test").ask("describe", members).result)
        }
    }

    private func checkRefusals(_ program: StepExecutable, _ description: StepDescription) {
        let wrong: [(String, String)] = [
            ("unknown message", "{\"message\":\"frobnicate\",\"protocol\":1}\n"),
            ("unsupported protocol", "{\"message\":\"plan\",\"protocol\":99,\"context\":{}}\n"),
            ("garbage", "}{ \u{1}\n"),
        ]
        for (name, line) in wrong {
            checkWithNote(name) {
                try Files.withScratchDirectory { scratch in
                    do {
                        _ = try conversation(program, scratch, description.name).send(Array(line.utf8), as: name)
                    } catch let error as MoultError {
                        // An error reply, or an exit without a result, is expected here.
                        if error.code == .stepRefused { return "refused with an error" }
                        if error.why?.contains("and without a result") == true { return "exited without a result" }
                        throw error
                    }
                    throw Finding("the step returned a result for an invalid request")
                }
            }
        }
    }

    private func step(_ description: StepDescription, _ program: StepExecutable) -> ExternalStep {
        var settings = StepSettings(name: description.name, executable: program.path)
        settings.sha256 = program.sha256
        settings.timeout = options.timeout
        settings.prepareTimeout = options.timeout
        settings.writable = [granted]
        var step = ExternalStep(settings)
        step.use = Manifest.StepUse(step: description.name, when: options.when, phase: options.phase, with: parameters)
        return step
    }

    private func planContext() throws -> PlanContext {
        PlanContext(
            purpose: .update, release: try manifest(), generation: "1.0.0+00000000", installed: nil,
            installedGeneration: nil, resources: directory,
            policy: Policy(follow: .newer, moultVersion: moultVersion), store: TrialView(layout: layout))
    }

    private func plan(_ step: any Step, _ context: PlanContext) throws -> (effects: [Effect], level: String) {
        let before = try Footprint([directory])
        var context = context
        let level = Level()
        context.note = { level.text = $1 }
        let effects = try step.effects(in: context)
        if let changed = try Footprint([directory]).changes(since: before).first {
            throw Finding("the step changed \(changed) during planning")
        }
        return (effects, level.text)
    }

    private final class Level: @unchecked Sendable {
        // Unchecked: the step runs `plan` on this thread.
        var text = ""
    }

    private func prepare(_ step: any Step, _ effects: [Effect], _ context: PlanContext) {
        let prepare = PrepareContext(
            plan: context, staging: staging, stagedGeneration: generation, progress: { _ in }, warn: { _ in })
        check("prepare\(round.suffix)") { try step.prepare(effects, prepare) }
        check("prepare again\(round.suffix)") {
            // After a crash, everything is staged again, and the step's own directory may or may not exist.
            try self.restage()
            try step.prepare(effects, prepare)
        }
    }

    private struct TrialView: StoreView {
        let layout: StoreLayout
        var root: String { layout.root }
        func look(_ path: String) throws -> Found { .nothing }
        func look(forGeneration generation: String) -> Found { .nothing }
        func isLinked(_ path: String, to member: String) -> Bool { false }
        func path(ofMember member: String, in generation: String) -> String {
            "\(layout.generation(generation))/\(member)"
        }
        func proveSeal(of generation: String) throws {}
    }
}
