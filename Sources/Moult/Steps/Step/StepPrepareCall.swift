internal import MoultBasics
internal import MoultFiles
internal import StepKit
internal import Synchronization

/// Lets a step prepare in its own directory of the transaction, and in the staged databases that its effects change.
struct StepPrepareCall {
    let step: ExternalStep
    let effects: [Effect]
    let context: PrepareContext

    func run(_ executable: StepExecutable) throws {
        let own = step.own(context.staging)
        try Files.ensureDirectory("\(context.staging)/steps", mode: 0o700)
        try Files.ensureDirectory(own, mode: 0o700)
        let staged = try staged()
        let writable = [own] + (staged.isEmpty ? [] : [context.stagedGeneration])
        let before = try Footprint([context.stagedGeneration])
        try Files.withScratchDirectory { scratch in
            var conversation = step.conversation(
                executable, StepRights(writable: writable, sockets: step.sockets), scratch)
            conversation.seconds = step.settings.prepareTimeout
            conversation.countsSilence = true
            let last = Mutex(PrepareContext.Progress(step.name, done: 0, total: 0))
            conversation.onProgress = { what, done, total in
                let progress = PrepareContext.Progress(visible(what), done: max(0, done), total: max(0, total))
                last.withLock { $0 = progress }
                try context.progress(progress)
            }
            // `context.progress` throws if the update is to stop, so the last report is repeated to check for that.
            conversation.stop = { try context.progress(last.withLock { $0 }) }
            conversation.onLog = { context.warn("\(step.name): \(visible($0))") }
            _ = try conversation.ask("prepare", message(own, staged))
        }
        try compare(with: before, mine: staged.map(path))
    }

    private func message(_ own: String, _ staged: [Database]) -> JSON {
        [
            "transaction": .string(Files.name(of: context.staging)),
            "context": step.contextJSON(context.plan, step.parameters(context.plan, effects.first?.phase)),
            "effects": .array(effects.map(\.json)),
            "staging": [
                "directory": .string(own), "databases": .object(staged.map { JSON.Member($0.name, .string(path($0))) }),
            ],
        ]
    }

    private func path(_ database: Database) -> String { "\(context.stagedGeneration)/\(database.member)" }

    /// Returns the read-only databases that the step may change: unpacked, but not yet verified.
    private func staged() throws -> [Database] {
        let isProven = step.use?.phase == .verify && step.use?.when == .after
        let isUnpacked = (step.use?.phase ?? .copy) > .copy || step.use?.phase == .copy && step.use?.when == .after
        guard isUnpacked, !isProven else { return [] }
        let named = Set(effects.filter(\.isCustom).compactMap(\.database))
        return try context.plan.release.databases.filter { database in
            guard named.contains(database.name), database.kind.isSealed, database.place == .generation else {
                return false
            }
            // Nothing is staged for a database that comes from a kept generation.
            return try Files.facts(path(database)) != nil
        }
    }

    private func compare(with before: Footprint, mine: [String]) throws {
        func failed(_ what: String) -> MoultError { Misbehaviour.outsideThePlan(what).error(step.name, "prepare") }
        let after = try Footprint([context.stagedGeneration])
        for changed in after.changes(since: before) where changed != context.stagedGeneration {
            guard mine.contains(changed) else { throw failed("\(changed) was changed") }
            guard let facts = after.entries[changed], facts.kind == .file, facts.links == 1 else {
                throw failed("\(changed) is no longer a regular file without other hard links")
            }
        }
    }
}
