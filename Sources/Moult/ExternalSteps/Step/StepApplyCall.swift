internal import MoultBasics
internal import MoultFiles
internal import StepKit

/// Lets a step apply or undo one effect. The step may write only to the paths that the effect names.
struct StepApplyCall {
    let step: ExternalStep
    let effect: Effect
    let context: ApplyContext
    /// Changes to the conversation made by the conformance checks.
    var adjust: (inout StepConversation) -> Void = { _ in }

    func run(_ message: String, _ executable: StepExecutable) throws {
        do {
            let writes = try step.writes(of: effect)
            let grants = try grants(for: writes)
            let before: Footprint
            do { before = try Footprint(grants.around, except: writes) } catch {
                // If no file was recorded, the effect was not applied, for the same reason.
                if message == "undo", grants.made.isEmpty { return }
                throw error
            }
            // Recorded, so that a later undo can also remove a file that the step created.
            let new = grants.missing.filter { !grants.made.contains($0) }
            if message == "apply", !new.isEmpty {
                let paths = JSON.array(new.map { .string($0) })
                try context.intents.add(.object([.init(Self.mark, paths)]), for: effect)
            }
            try converse(message, executable, writes, grants: grants.themselves + grants.around)
            for changed in try Footprint(grants.around, except: writes).changes(since: before)
            where !grants.around.contains(changed) {
                throw StepConversation.Misbehaving(.outsideThePlan("\(changed) was changed"))
            }
        } catch let error as StepConversation.Misbehaving { throw error.what.error(step.name, message) }
    }

    /// Returns the paths to which Landlock lets the step write: an existing path itself; for a file that does not exist, or did
    /// not exist when the update began, its directory, so that the step can create and remove the file. Other changes in that
    /// directory are found by comparison.
    private func grants(for writes: [String]) throws -> Grants {
        let made = try Set(
            context.intents.all(for: effect).flatMap { ($0[Self.mark]?.array ?? []).compactMap(\.string) })
        let missing = try writes.filter { try Files.facts($0) == nil }
        let files = Set(missing).union(made)
        return Grants(
            themselves: writes.filter { !files.contains($0) }, around: Set(files.map(Files.directory(of:))).sorted(),
            missing: missing, made: made)
    }

    private struct Grants {
        let themselves: [String]
        let around: [String]
        /// The planned files that do not exist.
        let missing: [String]
        /// The files that did not exist when the effect was first applied.
        let made: Set<String>
    }

    /// The key in an intent under which moult records the files that did not exist before.
    static let mark = "moult"

    private func converse(
        _ message: String, _ executable: StepExecutable, _ writes: [String], grants: [String]
    ) throws {
        let own = step.own(context.staging)
        try Files.withScratchDirectory { scratch in
            let mine = try Files.facts(own) == nil ? [] : [own]
            var conversation = step.conversation(
                executable, StepRights(writable: mine + grants, sockets: step.sockets), scratch)
            conversation.onIntent = { intent in
                guard intent[Self.mark] == nil else {
                    throw StepConversation.Misbehaving(.wrongAnswer("its intent has a member \"\(Self.mark)\""))
                }
                if let path = intent["path"]?.string {
                    guard let place = try PathRules.resolvedForWriting(path),
                        (writes + mine).contains(where: { PathRules.isInside(place, $0) })
                    else {
                        throw StepConversation.Misbehaving(.outsideThePlan("an intent has the path \(visible(path))"))
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
                    "effect": effect.json,
                    "intents": .array(try context.intents.all(for: effect).filter { $0[Self.mark] == nil }),
                    "staging": ["directory": .string(own)],
                ])
        }
    }
}

/// The files below the given paths, for detecting changes. Their content is not read.
struct Footprint: Equatable {
    private(set) var entries: [String: FileFacts] = [:]

    /// More files would take too long to compare.
    private static let maxFiles = 20_000

    /// `planned` are paths in which a step may change everything.
    init(_ paths: [String], except planned: [String] = []) throws {
        func isSkipped(_ path: String) -> Bool { planned.contains { PathRules.isInside(path, $0) } }
        for path in paths {
            try walk(path, isSkipped)
            guard entries.count <= Self.maxFiles else {
                throw MoultError(
                    .step, .refused, what: "cannot check what a step changes in \(path)",
                    why: "it has more than \(Self.maxFiles) files",
                    now: "Give the step a separate directory (\"writable\" in moult.json).")
            }
        }
    }

    private mutating func walk(_ path: String, _ isSkipped: (String) -> Bool) throws {
        guard !isSkipped(path), entries.count <= Self.maxFiles, let facts = try Files.facts(path) else { return }
        entries[path] = facts
        guard facts.kind == .directory else { return }
        for name in try Files.list(path) { try walk("\(path)/\(name)", isSkipped) }
    }

    /// Returns the paths that differ from before, sorted.
    func changes(since before: Footprint) -> [String] {
        Set(entries.keys).union(before.entries.keys).filter { entries[$0] != before.entries[$0] }.sorted()
    }
}
