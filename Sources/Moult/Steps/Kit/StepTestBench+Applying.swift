internal import MoultBasics
internal import MoultFiles
internal import StepKit

extension StepTestBench {
    /// Applies one effect twice and undoes it twice, then kills the step at each point of an application and checks that the
    /// next message still works, and finally cancels the step.
    func apply(_ step: ExternalStep, _ effect: Effect, _ plan: PlanContext) {
        let name = { [round] (what: String) in "\(what)\(round.suffix): \(effect.text)" }
        let intents = TrialIntents()
        func run(_ message: String, _ adjust: @escaping (inout StepConversation) -> Void = { _ in }) throws {
            let context = ApplyContext(plan: plan, staging: staging, intents: intents)
            var applying = StepApplyCall(step: step, effect: effect, context: context)
            applying.adjust = adjust
            try applying.run(message, step.trusted())
        }
        var before: [String: String] = [:]
        var after: [String: String] = [:]
        check(name("undo of a change that was not started")) {
            before = try content()
            try run("undo")
            try expectContent(before, "undoing a change that was not started")
        }
        var count = 0
        var isRefused = false
        let isApplied = checkWithNote(name("apply")) {
            do { try run("apply") } catch let error as MoultError where round == .occupied && error.code == .stepRefused
            {
                // A step need not replace files of other programs.
                try expectContent(before, "refusing the change")
                isRefused = true
                return "refused with an error"
            }
            after = try content()
            count = intents.mine.count
            return counted(count, "intent")
        }
        if !isApplied || isRefused { return }
        check(name("apply again")) {
            try run("apply")
            try expectContent(after, "applying the change twice")
        }
        let isUndone = check(name("undo")) {
            try run("undo")
            try expectContent(before, "undoing the change")
        }
        if !isUndone { return }
        check(name("undo again")) {
            try run("undo")
            try expectContent(before, "undoing the change twice")
        }
        for point in 0...count { checkAfterKill(at: point, of: count, name, intents, before, after, run) }
        check(name("cancel")) {
            intents.list = []
            // The step may still finish, or report that it was cancelled, but it must not keep running.
            do {
                try run("apply") {
                    $0.seconds = 5
                    $0.extra = Array("{\"message\":\"cancel\"}\n".utf8)
                }
            } catch let error as MoultError
                where error.code == .stepRefused || error.why?.contains("and without a result") == true
            {}
            try run("undo")
            try expectContent(before, "undoing a cancelled change")
            try run("apply")
        }
    }

    /// Applies an effect of a step written in Swift twice, undoes it twice, and applies it again. Such a step runs in this process and
    /// cannot be killed alone.
    func applyOwn(_ step: any CustomStep, _ effect: Effect, _ plan: PlanContext) {
        let context = ApplyContext(plan: plan, staging: staging, intents: TrialIntents())
        var before: [String: String] = [:]
        var after: [String: String] = [:]
        check("apply\(round.suffix): \(effect.text)") {
            before = try content()
            try step.apply(effect, context)
            after = try content()
        }
        check("apply again\(round.suffix): \(effect.text)") {
            try step.apply(effect, context)
            try expectContent(after, "applying the change twice")
        }
        for again in ["", " again"] {
            check("undo\(again)\(round.suffix): \(effect.text)") {
                try step.undo(effect, context)
                try expectContent(before, "undoing the change\(again)")
            }
        }
        check("apply after undo\(round.suffix): \(effect.text)") {
            try step.apply(effect, context)
            try expectContent(after, "applying the change after undoing it")
        }
    }

    /// Kills the step after it has sent an intent and before it gets the acknowledgement, or, at the last point, after it has
    /// sent its result. Then checks that the effect can be undone, and that it can be applied.
    private func checkAfterKill(
        at point: Int, of count: Int, _ name: (String) -> String, _ intents: TrialIntents, _ before: [String: String],
        _ after: [String: String], _ run: (String, @escaping (inout StepConversation) -> Void) throws -> Void
    ) {
        func kill() throws {
            intents.list = []
            intents.killAt = point < count ? point + 1 : 0
            defer { intents.killAt = 0 }
            do {
                try run("apply") { conversation in
                    if point == count { conversation.onResult = { throw StepConversation.Killed() } }
                }
            } catch is StepConversation.Killed { return }
            throw Finding("the step exited before the test could kill it")
        }
        check(name("killed at point \(point + 1) of \(count + 1), then undo")) {
            try kill()
            try run("undo") { _ in }
            try expectContent(before, "undoing an interrupted change")
        }
        check(name("killed at point \(point + 1) of \(count + 1), then apply")) {
            try kill()
            try run("apply") { _ in }
            try expectContent(after, "finishing an interrupted change")
            try run("undo") { _ in }
        }
    }

    private func expectContent(_ expected: [String: String], _ what: String) throws {
        let now = try content()
        let other = Set(now.keys).union(expected.keys).filter { now[$0] != expected[$0] }.sorted()
        if let path = other.first { throw Finding("after \(what), \(path) does not have the expected content") }
    }

    /// An in-memory journal for the checks.
    final class TrialIntents: Intents, @unchecked Sendable {
        // Unchecked: each step runs on one thread.
        var list: [JSON] = []
        var mine: [JSON] { list.filter { $0[StepApplyCall.mark] == nil } }
        /// The number of the intent at which to kill the step; 0 for never.
        var killAt = 0

        func add(_ intent: JSON, for effect: Effect) throws {
            list.append(intent)
            guard intent[StepApplyCall.mark] == nil else { return }
            if mine.count == killAt { throw StepConversation.Killed() }
        }
        func all(for effect: Effect) -> [JSON] { list }
    }
}
