internal import MoultBasics
internal import MoultFiles

/// The state of a step's program.
package struct ExternalState {
    /// `trusted`, `not trusted`, `changed`, `missing`, `unfit`, or `rules only` if the settings specify no program.
    package let state: String
    /// Why the program must not run.
    package let why: String?
    /// The step's description of itself, if it may run.
    package let description: StepDescription?

    package init(_ step: ExternalStep) throws {
        guard let path = step.settings.executable else {
            (state, why, description) = ("rules only", "moult.json does not specify an executable", nil)
            return
        }
        guard try Files.factsThroughLinks(path) != nil else {
            (state, why, description) = ("missing", "\(path) does not exist", nil)
            return
        }
        do {
            let executable = try step.trusted()
            description = try Files.withScratchDirectory { scratch in
                var conversation = step.conversation(executable, StepRights(plans: true), scratch)
                return try StepPlanCall.describe(&conversation)
            }
            (state, why) = ("trusted", nil)
        } catch let error as MoultError {
            let isPinned = step.settings.sha256 != nil
            state = error.code == .stepTrust ? (isPinned ? "changed" : "not trusted") : "unfit"
            why = error.why ?? error.what
            description = nil
        }
    }
}
