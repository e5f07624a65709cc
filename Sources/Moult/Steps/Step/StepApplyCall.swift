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
        let isUndo = message == "undo"
        do {
            let created = try created()
            let writes = try step.writes(of: effect, created: created, isUndo: isUndo)
            if !isUndo { try createMissing(writes, created) }
            // A link is not granted, because it could lead anywhere.
            let granted = try writes.filter { [.file, .directory].contains(try Files.facts($0)?.kind) }
            try converse(message, executable, granted)
            for path in granted where try Files.facts(path)?.kind == .link {
                throw Misbehaviour.outsideThePlan("\(path) was replaced with a symbolic link")
            }
            if isUndo { try removeCreated(writes.filter(created.contains)) }
        } catch let error as Misbehaviour { throw error.error(step.name, message) }
    }

    // MARK: files that do not exist

    /// The key in an intent under which moult records the files that it creates for the step.
    static let mark = "moult"

    /// Returns the files that moult has created for this effect, or was about to create when it crashed.
    private func created() throws -> Set<String> {
        try Set(context.intents.all(for: effect).flatMap { ($0[Self.mark]?.array ?? []).compactMap(\.string) })
    }

    /// Creates the planned files that do not exist, so that the step can be given access to them alone. They are recorded first,
    /// so that an undo after a crash removes them.
    private func createMissing(_ writes: [String], _ created: Set<String>) throws {
        // A link cannot be what moult has created there.
        for path in writes.filter(created.contains) where try Files.facts(path)?.kind == .link {
            try Files.remove(path)
        }
        let missing = try writes.filter { try Files.facts($0) == nil }
        let new = missing.filter { !created.contains($0) }
        if !new.isEmpty {
            try context.intents.add(.object([.init(Self.mark, .array(new.map { .string($0) }))]), for: effect)
        }
        for path in missing { try Files.writeNew([], to: path, mode: 0o644 & ~(Permission.umask ?? 0o022)) }
    }

    /// Removes the files that moult has created, unless the step left something in them, and links in their place.
    private func removeCreated(_ paths: [String]) throws {
        for path in paths {
            guard let facts = try Files.facts(path) else { continue }
            if facts.kind == .link || facts.kind == .file && facts.size == 0 { try Files.remove(path) }
        }
    }

    private func converse(_ message: String, _ executable: StepExecutable, _ writes: [String]) throws {
        let own = step.own(context.staging)
        try Files.withScratchDirectory { scratch in
            let mine = try Files.facts(own) == nil ? [] : [own]
            var conversation = step.conversation(
                executable, StepRights(writable: mine + writes, sockets: step.sockets), scratch)
            conversation.onIntent = { intent in
                guard intent[Self.mark] == nil else {
                    throw Misbehaviour.wrongAnswer("its intent has a member \"\(Self.mark)\"")
                }
                if let path = intent["path"]?.string {
                    guard let place = try PathRules.resolvedForWriting(path),
                        (writes + mine).contains(where: { PathRules.isInside(place, $0) })
                    else { throw Misbehaviour.outsideThePlan("an intent has the path \(visible(path))") }
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
    /// For each directory with a name that is not UTF-8, which moult never uses: the directory, and these words.
    private var foreign: Set<String> = []

    init(_ paths: [String]) throws { for path in paths { try walk(path) } }

    private mutating func walk(_ path: String) throws {
        guard let facts = try Files.facts(path) else { return }
        entries[path] = facts
        guard facts.kind == .directory else { return }
        if try !Files.hasOnly(path, where: { _ in true }) { foreign.insert("\(path)/ (a name that is not UTF-8)") }
        for name in try Files.list(path) { try walk("\(path)/\(name)") }
    }

    func changes(since before: Footprint) -> [String] {
        Set(entries.keys).union(before.entries.keys).filter { entries[$0] != before.entries[$0] }
            .union(foreign.symmetricDifference(before.foreign)).sorted()
    }
}
