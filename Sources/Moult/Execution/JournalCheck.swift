internal import MoultBasics
internal import MoultFiles
internal import StepKit

/// Checks that an unfinished update may change the files that its journal names.
///
/// A journal is a file of the store, and the store may come from another user or from an archive. Recovery therefore changes
/// only paths that a manifest may have, in the store or in the cache directory that the store's settings specify.
struct JournalCheck {
    let transaction: Transaction
    let cacheRoot: String?

    func check(_ state: Journal.State) throws {
        guard let plan = state.plan else { return }
        if let before = plan.request.cacheRoot, before != cacheRoot,
            plan.effects.contains(where: { $0.change.traits.paths.contains { $0.isBelow(before) } })
        {
            throw MoultError(
                .stuck, .stuck,
                what: "the unfinished update in \(transaction.directory) cannot be finished or undone",
                why: "it changes caches in \(before), but \"cacheRoot\" in \(transaction.layout.settings) is now "
                    + (cacheRoot.map { "\($0)" } ?? "missing"),
                now:
                    "If you trust the store, set \"cacheRoot\" to \(before), run \(moult: "recover"), and then set it back."
            )
        }
        guard plan.id == transaction.id else { throw try invalid("its plan has the ID \(plan.id)") }
        for effect in plan.effects + state.intents.map(\.effect) {
            if let fault = effect.database.flatMap(PlainName.databaseFault) {
                throw try invalid("the name of a database in its plan \(fault)")
            }
            let traits = effect.change.traits
            for path in traits.paths { try check(path) }
            for member in traits.members {
                if let fault = PlainName.fault(path: member) { throw try invalid("\(member) in its plan \(fault)") }
            }
            for name in traits.directories where name.containsSlash || name.hasPrefix(".") {
                throw try invalid("its plan has the directory \(name)")
            }
        }
    }

    private func check(_ path: String) throws {
        var name = path
        if path.isAbsolutePath {
            guard let below = cacheRoot.flatMap({ path.relative(to: $0) }) else {
                throw try invalid("its plan changes \(path), which is outside the store")
            }
            name = below
        }
        // A name without '/' cannot lead through a symlink to another directory.
        if let fault = PlainName.fault(name) { throw try invalid("the path \(path) in its plan \(fault)") }
    }

    private func invalid(_ why: String) throws -> MoultError {
        let directory = transaction.directory
        return MoultError(
            .stuck, .stuck, what: "the unfinished update in \(directory) cannot be finished or undone", why: why,
            now: "Find out who created \(transaction.directory). To discard the update, move its directory away: "
                + "\(run: ["mv", directory, try Files.firstFree("\(directory).old")])")
    }
}
