internal import MoultBasics
internal import MoultFiles
internal import StepKit

/// The progress of an update, from which it is finished or undone after a crash. Each record is a file in the transaction's directory
/// and is complete when it has its name; none is ever changed.
///
///     plan.json   released-N …   decided.json   intent-N …   attempt-N …   undoing.json   ended.json
///
/// What an update syncs, in order, and why; `SyncTests` compares this table with the calls of real updates. The letters are the updates
/// that need it: r, a new `reference` database; s, a `shared` one; b, a rollback of that one. ID is the directory of the transaction.
///
///     generation/DB    rs   the content that the update installs after the decision
///     manifest.json    rs
///     seal.json        rs   by which recovery knows the generation
///     generation       rs   their names
///     plan.json        sb   recovery looks for SQLite's journals beside databases only if it finds the plan
///     ID               sb
///     transactions     sb
///     DB-journal       sb   SQLite: the old pages, before any page of the database is overwritten
///     store            sb   SQLite: the journal's name
///     DB-journal       sb   SQLite: the number of its pages
///     waiting          sb   names of staged files, to which the decision refers
///     ID               rsb
///     transactions     r    the directory's name; that earlier ones were removed (otherwise synced with the plan)
///     decided.json     rsb  the decision
///     ID               rsb
///     holds.json       b    the hold on the release that was left
///     .moult           b
///     generations      rs   the generation's name, before the pointer has it as target
///     .moult           rsb  the pointer: an app that has read the new release must not find the old one again
///     DB-journal       sb   SQLite: the last pages
///     DB-journal       sb
///     DB               sb   SQLite: the new content
///     DB-journal       sb   SQLite: the commit
///     store            sb   the removal of the journal, which would otherwise be rolled back
///     .moult           sb   names of the announcement and of the results of checks
///     history.jsonl    b    from which a lost `holds.json` is noticed
package struct Journal: Intents {
    let directory: String

    private static let largest = 1 << 26

    package struct State {
        var plan: Plan?
        /// For each writable database, the transaction whose marker it had at the decision; nil before the decision.
        package var decided: [String: String?]?
        var released: [String] = []
        var attempts = 0
        var undoing: String?
        var intents: [(effect: Effect, intent: JSON)] = []
    }

    private func path(_ name: String) -> String { "\(directory)/\(name)" }
    private var plan: String { path(Transaction.planName) }
    private var decided: String { path(Transaction.decidedName) }
    private var undoing: String { path("undoing.json") }

    func begin(_ plan: Plan) throws {
        // Not synced: before the decision a crash may lose all of this, because nothing needs recovery then.
        let file = try Descriptor(self.plan, .create, mode: 0o600)
        try file.write(Array(plan.json.line.utf8))
        try file.close()
    }

    /// Syncs the plan with the directories above it. Called before any change that recovery may have to repair. From then on, the
    /// removal of earlier transactions is durable, too.
    func sync() throws {
        // After the decision, its record has the plan, too, and the removal of a complete update may have begun.
        if try Files.facts(decided) == nil { try Files.syncFile(plan) }
        try Files.syncDirectory(directory)
        try Files.syncDirectory(Files.directory(of: directory))
    }

    /// Records the decision: from then on, recovery finishes the update after a crash. `isSynced` says that `sync` was called.
    func decide(_ plan: Plan, markers: [String: String?], isSynced: Bool) throws {
        let members = markers.sorted { $0.key < $1.key }.map { JSON.Member($0.key, .optional($0.value) ?? .null) }
        // What the decision refers to is in this directory, and its name must be durable before that of the decision.
        try Files.syncDirectory(directory)
        if !isSynced { try Files.syncDirectory(Files.directory(of: directory)) }
        try write(["plan": plan.json, "markers": .object(members)], to: decided)
    }

    /// Records that a consumer is about to be asked to release its databases, so that recovery asks it to reload them after a
    /// crash. Not synced.
    func releasing(_ consumer: String) throws {
        try write(.string(consumer), to: path("\(Self.released)\(numbered(Self.released).count + 1)"), durable: false)
    }

    /// Records a step's intent. Synced before the step acts on it.
    package func add(_ intent: JSON, for effect: Effect) throws {
        let number = try numbered(Self.intent).count + 1
        try write(["effect": effect.json, "intent": intent], to: path("\(Self.intent)\(number)"))
    }

    package func all(for effect: Effect) throws -> [JSON] {
        try read().intents.filter { $0.effect == effect }.map(\.intent)
    }

    /// Records an attempt to recover. Synced, so that an attempt that crashes the machine counts.
    func attempt() throws { try write(.null, to: path("\(Self.attempt)\(numbered(Self.attempt).count + 1)")) }
    /// Records that the update is being undone. Synced before the first effect is undone, so that recovery continues the undo.
    func undoing(_ why: String) throws { try write(.string(why), to: undoing) }

    /// Records the end of an update that was decided: recovery has nothing left to do. Not synced, because everything may be done again.
    func end() throws {
        if try Files.facts(decided) != nil { try Files.rename(decided, to: path(Transaction.endedName)) }
    }

    private static let (released, intent, attempt) = ("released-", "intent-", "attempt-")

    private func write(_ record: JSON, to path: String, durable: Bool = true) throws {
        try Files.replace(path, with: Array(record.line.utf8), mode: 0o600, durable: durable)
    }

    private func numbered(_ kind: String) throws -> [String] {
        try Files.list(directory).compactMap { name in name.hasPrefix(kind) ? Int(name.dropFirst(kind.utf8.count)) : nil
        }.sorted().map { path("\(kind)\($0)") }
    }

    package func read() throws -> State {
        var state = State()
        for path in [decided, path(Transaction.endedName)] {
            guard let record = try json(path) else { continue }
            guard let plan = record["plan"], let markers = record["markers"]?.members else { throw try unknown(path) }
            state.plan = try Plan(json: plan, source: path)
            state.decided = markers.reduce(into: [:]) { $0.updateValue($1.value.string, forKey: $1.name) }
        }
        // A plan that a power failure has torn was not synced, so nothing relies on it.
        if state.plan == nil, let plan = try? json(plan) { state.plan = try? Plan(json: plan, source: self.plan) }
        // A power failure that has torn such a record has also ended its consumer.
        state.released = try numbered(Self.released).compactMap { (try? json($0))?.string }
        state.attempts = try numbered(Self.attempt).count
        state.undoing = try json(undoing).map { $0.string ?? "" }
        state.intents = try numbered(Self.intent).map { path in
            guard let record = try json(path), let effect = record["effect"], let intent = record["intent"] else {
                throw try unknown(path)
            }
            return (try Effect(json: effect, source: path), intent)
        }
        return state
    }

    private func json(_ path: String) throws -> JSON? {
        guard let bytes = try Files.read(path, limit: Self.largest) else { return nil }
        do { return try JSON(parsing: bytes, source: path) } catch let error as MoultError {
            throw try damaged(error.what, error)
        }
    }

    private func unknown(_ path: String) throws -> MoultError {
        try damaged("\(path) is not a record of this version of moult")
    }

    private func damaged(_ why: String, _ cause: (any Error)? = nil) throws -> MoultError {
        let now: Advice = "To discard the update, move its directory away, then apply the release again: "
        return unusable(why, now: now + "\(run: try movingAway())", cause)
    }

    private func movingAway() throws -> [String] { ["mv", directory, try Files.firstFree("\(directory).old")] }

    private func unusable(_ why: String, now: Advice, _ cause: (any Error)? = nil) -> MoultError {
        MoultError(
            .stuck, .stuck, what: "the unfinished update in \(directory) cannot be finished or undone", why: why,
            now: now, cause: cause)
    }
}

extension Transaction {
    /// Returns the state of an unfinished update; throws unless the update may change the files that its journal names.
    ///
    /// A journal is a file of the store, and the store may come from another user or from an archive. Recovery therefore changes
    /// only paths that a manifest may have, in the store or in the cache directory that the store's settings specify.
    func checkedState(cacheRoot: String?) throws -> Journal.State {
        let state = try journal.read()
        if let plan = state.plan { try journal.check(plan, state.intents.map(\.effect), of: self, cacheRoot) }
        return state
    }
}

extension Journal {
    fileprivate func check(_ plan: Plan, _ intended: [Effect], of transaction: Transaction, _ cacheRoot: String?) throws
    {
        if let before = plan.request.cacheRoot, before != cacheRoot,
            plan.effects.contains(where: { $0.change.traits.paths.contains { $0.isBelow(before) } })
        {
            throw unusable(
                "it changes caches in \(before), but \"cacheRoot\" in \(transaction.layout.settings) is now "
                    + (cacheRoot ?? "missing"),
                now:
                    "If you trust the store, set \"cacheRoot\" to \(before), run \(moult: "recover"), and then set it back."
            )
        }
        guard plan.id == transaction.id else { throw try invalid("its plan has the ID \(plan.id)") }
        for effect in plan.effects + intended {
            if let fault = effect.database.flatMap(PlainName.databaseFault) {
                throw try invalid("the name of a database in its plan \(fault)")
            }
            let traits = effect.change.traits
            for path in traits.paths { try check(path, cacheRoot) }
            for member in traits.members {
                if let fault = PlainName.fault(path: member) { throw try invalid("\(member) in its plan \(fault)") }
            }
            for name in traits.directories where name.containsSlash || name.hasPrefix(".") {
                throw try invalid("its plan has the directory \(name)")
            }
        }
    }

    private func check(_ path: String, _ cacheRoot: String?) throws {
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
        let now: Advice = "Find out who created \(directory). To discard the update, move its directory away: "
        return unusable(why, now: now + "\(run: try movingAway())")
    }
}
