internal import MoultBasics
internal import MoultFiles
internal import MoultLibc
internal import StepKit

/// Asks a step for its planned effects, in a process that cannot change anything, and checks afterwards that nothing changed.
struct StepPlanCall {
    let step: ExternalStep
    let context: PlanContext
    let with: JSON

    static func describe(_ conversation: inout StepConversation) throws -> StepDescription {
        let answer = try conversation.ask("describe", ["protocols": [1]])
        do { return try StepDescription(answer.result) } catch let error as Misbehaviour {
            throw error.error(conversation.step, "describe")
        }
    }

    func ask(_ conversation: StepConversation) throws -> (effects: [Effect], level: String) {
        let before = try footprint()
        let answer = try conversation.ask("plan", ["context": step.contextJSON(context, with)])
        if let touched = try footprint().changes(since: before).first {
            throw Misbehaviour.outsideThePlan("\(touched) changed during planning").error(step.name, "plan")
        }
        let level = StepRights.level(mountsReadOnly: answer.mountsAreReadOnly)
        do {
            return (try Self.effects(answer.result, of: step.name, phase: step.use?.phase ?? .copy, step), level)
        } catch let error as Misbehaviour { throw error.error(step.name, "plan") }
    }

    /// Returns the files that only moult writes. Apps may write to their writable databases at any time.
    private func footprint() throws -> Footprint {
        let layout = try StoreLayout(root: context.store.root)
        return try Footprint([layout.settings, layout.current, layout.generations])
    }

    /// Reads the planned effects from a step's answer. An external step may plan custom effects and report findings. Only
    /// built-in steps plan other effects, because those depend on each other, and a second effect of the same kind would break
    /// the first.
    static func effects(_ answer: JSON, of name: String, phase: Phase, _ step: ExternalStep?) throws -> [Effect] {
        func wrong(_ why: String) -> Misbehaviour { .wrongAnswer(why) }
        guard let list = answer["effects"]?.array else { throw wrong("\"effects\" must be a list") }
        guard list.count <= 1000 else { throw wrong("the plan has more than 1000 effects") }
        return try list.map { json in
            let whole = json.setting("step", to: .string(name)).setting("phase", to: .string(phase.rawValue))
            var effect: Effect
            do { effect = try Effect(json: whole, source: "its plan") } catch {
                throw wrong((error as? MoultError)?.what ?? "\(error)")
            }
            switch effect.change {
            case .confirm(let text): effect.change = .confirm(visible(text))
            case .keep(let why): effect.change = .keep(why: visible(why))
            case .custom(let kind, let text, let with):
                effect.change = .custom(name: visible(kind), text: visible(text), with: with)
                _ = try step?.writes(of: effect)
            default:
                throw wrong(
                    "the plan has the change \"\(json["change"]?["do"]?.string ?? "")\", but an external step may plan only confirm, keep and custom"
                )
            }
            return effect
        }
    }
}

extension ExternalStep {
    /// Returns the paths that an effect writes to. Each must be granted by the operator.
    /// `created` are the files that moult has created for the effect: a link that a program has put there since is not followed.
    /// An undo gets only the paths that it may still write to.
    func writes(of effect: Effect, created: Set<String> = [], isUndo: Bool = false) throws -> [String] {
        guard case .custom(_, _, let with) = effect.change, let list = with["writes"] else { return [] }
        func wrong(_ why: String) -> Misbehaviour { .wrongAnswer(why) }
        guard let texts = list.array?.map(\.string) else { throw wrong("\"writes\" must be a list of paths") }
        let grants = try settings.writable.flatMap { granted in
            try [PathRules.place(granted), PathRules.resolvedForWriting(granted)].compactMap(\.self)
        }
        return try texts.compactMap { text in
            guard let text, text.isAbsolutePath else { throw wrong("\"writes\" must contain only absolute paths") }
            let place = PathRules.place(text).flatMap { created.contains($0) ? $0 : nil }
            guard let path = try place ?? PathRules.resolvedForWriting(text) else {
                if isUndo { return nil }
                let isLink = try Files.facts(text)?.kind == .link
                throw Misbehaviour.outsideThePlan(
                    isLink
                        ? "\(visible(text)) is a symbolic link to nothing"
                        : "the directory of \(visible(text)) does not exist")
            }
            if grants.contains(where: { PathRules.isInside(path, $0) }) {
                try refuseForeign(text)
                return path
            }
            if isUndo { return nil }
            throw Misbehaviour.outsideThePlan(
                "\"writable\" in moult.json does not include \(visible(text)), which the plan writes to")
        }
    }

    /// Throws if another user determines where a granted path leads: that user could exchange a directory for a link while the
    /// step is started.
    private func refuseForeign(_ path: String) throws {
        guard let fault = try PathCustody.faults(ofPath: path, for: geteuid()).first else { return }
        throw MoultError(
            .stepTrust, .refused,
            what: "the step \(name) may not write to \(visible(path)): \(fault.path) \(fault.why)",
            why: "a user who can change that path determines which file the step changes",
            now: fault.remedy.map { "To fix this: \(run: $0)" }
                ?? "Grant a path in directories that belong to root or to the user who runs the command.")
    }
}

/// Resolves paths, so that no symlink and no `..` leads out of the granted paths.
enum PathRules {
    /// Returns the resolved path of a file that need not exist yet. Nil for a dangling symlink, or if the directory does not
    /// exist.
    static func resolvedForWriting(_ path: String) throws -> String? {
        if let there = Files.resolvedIfFound(path) { return there }
        // A process that writes to a dangling symlink would follow it.
        return try Files.facts(path) == nil ? place(path) : nil
    }

    /// Returns the path in its resolved directory, without following a link at the path itself; nil if the directory does not
    /// exist.
    static func place(_ path: String) -> String? {
        let name = Files.name(of: path)
        guard name != "..", name != ".", let directory = Files.resolvedIfFound(Files.directory(of: path)) else {
            return nil
        }
        return "\(directory == "/" ? "" : directory)/\(name)"
    }

    static func isInside(_ path: String, _ directory: String) -> Bool { path == directory || path.isBelow(directory) }
}
