internal import MoultBasics
internal import MoultCore
internal import MoultFiles
internal import StepKit

/// Lets a step do one effect, or take it back: it may write where the effect says so, and nowhere else.
struct Applying {
    let step: ExternalStep
    let effect: Effect
    let context: ApplyContext
    /// What a trial does otherwise.
    var adjust: (inout StepConversation) -> Void = { _ in }

    func run(_ message: String, _ executable: StepExecutable) throws {
        do {
            let writes = try step.writes(of: effect)
            // A file is made, replaced and removed in its directory; what else becomes of that is compared.
            let directories = try writes.filter { try Files.facts($0)?.kind == .directory }
            let around = Set(writes.filter { !directories.contains($0) }.map(Files.directory(of:)))
            let before = try Footprint(around.sorted())
            try converse(message, executable, writes, grants: directories + around)
            for changed in try Footprint(around.sorted()).changes(since: before) {
                let isPlanned = around.contains(changed) || writes.contains { PathRules.isInside(changed, $0) }
                if !isPlanned { throw StepConversation.Misbehaving(.outsideThePlan("\(changed) was changed")) }
            }
        } catch let error as StepConversation.Misbehaving { throw error.what.error(step.name, message) }
    }

    private func converse(
        _ message: String, _ executable: StepExecutable, _ writes: [String], grants: [String]
    ) throws {
        let own = step.own(context.staging)
        try Files.withScratchDirectory { scratch in
            let mine = try Files.facts(own) == nil ? [] : [own]
            var conversation = step.conversation(
                executable, StepRights(writable: mine + grants, sockets: step.sockets), scratch)
            conversation.onIntent = { intent in
                if let path = intent["path"]?.string {
                    guard let place = try PathRules.resolvedForWriting(path),
                        (writes + mine).contains(where: { PathRules.isInside(place, $0) })
                    else {
                        throw StepConversation.Misbehaving(.outsideThePlan("it intends to write to \(visible(path))"))
                    }
                }
                try context.intents.add(intent, for: effect)
            }
            adjust(&conversation)
            _ = try conversation.ask(
                message,
                [
                    "transaction": .string(Files.name(of: context.staging)),
                    "context": step.contextJSON(context.plan, step.parameters(context.plan, effect.phase)),
                    "effect": effect.json, "intents": .array(try context.intents.all(for: effect)),
                    "staging": ["directory": .string(own)],
                ])
        }
    }
}
