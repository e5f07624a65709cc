internal import MoultBasics
internal import MoultFiles
internal import MoultStore
internal import StepKit

/// The record from which an update is finished or undone after a crash: JSON Lines in the transaction's directory.
///
///     begin {plan}   releasing {consumer} …   decided {schemas}
///     intent {effect, intent} …   attempt …   undoing {why}   undone   committed
package struct Journal {
    let path: String

    private static let largest = 1 << 26
    private static let page = 4096

    init(in directory: String) { path = "\(directory)/\(Transaction.journalName)" }

    /// The state of an update according to its journal.
    package struct State {
        var plan: Plan?
        /// The schema versions of the databases at the decision, by path; nil before the decision.
        package var decided: [String: UInt64]?
        /// The consumers that were asked to release.
        var released: [String] = []
        var attempts = 0
        var undoing: String?
        /// The intents that steps recorded before acting, by effect.
        var intents: [(effect: Effect, intent: JSON)] = []
        var isOver = false
    }

    func begin(_ plan: Plan) throws {
        // Not synced: before the decision a crash may lose all of this, because nothing needs recovery then.
        let file = try Descriptor(path, .create, mode: 0o600)
        try file.write(Array((JSON.object([.init("record", "begin"), .init("plan", plan.json)]).line + "\n").utf8))
        try file.close()
    }

    /// Syncs the journal and the directories that contain it. Called before any change that recovery may have to repair.
    func sync() throws {
        try syncNames()
        let file = try Descriptor(path, .read)
        try file.sync()
        try file.close()
    }

    /// Records the decision: from then on, recovery finishes the update after a crash.
    func decide(_ schemas: [String: UInt64]) throws {
        let members = schemas.sorted { $0.key < $1.key }.map {
            JSON.Member($0.key, .integer(Int64(bitPattern: $0.value)))
        }
        // A plan of several pages may be torn although the decision after it is intact; then recovery would not know the plan.
        if try (Files.facts(path)?.size ?? 0) > Self.page { try sync() } else { try syncNames() }
        try append(["record": "decided", "schemas": .object(members)])
    }

    /// Syncs the entries of the transaction's directory, and the entry of the directory itself. A record can reach the disk as
    /// soon as it is written, so these entries must be synced before any record that depends on them.
    private func syncNames() throws {
        let directory = Files.directory(of: path)
        try Files.syncDirectory(directory)
        try Files.syncDirectory(Files.directory(of: directory))
    }

    /// Records that a consumer is about to be asked to release its databases, so that recovery asks it to reload them after a
    /// crash. Not synced.
    func releasing(_ consumer: String) throws {
        try append(["record": "releasing", "consumer": .string(consumer)], sync: false)
    }

    /// Records a step's intent. Synced before the step acts on it.
    func intend(_ intent: JSON, for effect: Effect) throws {
        try append(["record": "intent", "effect": effect.json, "intent": intent])
    }

    /// Records an attempt to recover. Synced, so that an attempt that crashes the machine counts.
    func attempt() throws { try append(["record": "attempt"]) }

    /// Records that the update is being undone. Synced before the first effect is undone, so that recovery continues the undo.
    func undoing(_ why: String) throws { try append(["record": "undoing", "why": .string(why)]) }

    /// Records the end of the update. Not synced: if a power failure loses the record, recovery finds that the effects are
    /// already applied.
    package func end(_ record: String) throws { try append(["record": .string(record)], sync: false) }

    private func append(_ record: JSON, sync: Bool = true) throws {
        // In a store copied with `cp -al`, the original store shares this file, so the journal gets a file of its own first.
        try Files.detach(path)
        let file = try Descriptor(path, .append, mode: 0o600)
        try dropTornLine(file)
        try file.write(Array((record.line + "\n").utf8))
        if sync { try file.sync() }
        try file.close()
    }

    /// Removes a line torn by a crash or a full disk, so that the next record does not become part of it.
    private func dropTornLine(_ file: borrowing Descriptor) throws {
        let size = try file.facts().size
        var last: UInt8 = 0
        if size > 0 { _ = try withUnsafeMutableBytes(of: &last) { try file.read(into: $0, at: size - 1) } }
        if size == 0 || last == UInt8(ascii: "\n") { return }
        let bytes = try Files.read(path, limit: Self.largest) ?? []
        try file.truncate(to: bytes.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0)
    }

    /// Reads the records. A line torn by a crash, and everything after it, counts as not written.
    package func read() throws -> State {
        var state = State()
        guard let bytes = try Files.read(path, limit: Self.largest) else { return state }
        var lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: true)[...]
        while let line = lines.popFirst() {
            let json: JSON
            do { json = try JSON(parsing: Array(line), source: path) } catch {
                // The disk writes pages in any order, so a power failure may leave a later line without an earlier one. However,
                // if a line was synced, so were all lines before it.
                if lines.allSatisfy({ !isSynced($0) }) { break }
                throw error
            }
            try apply(json, to: &state)
        }
        return state
    }

    /// Returns whether a line is a record that was synced before the update relied on it.
    private func isSynced(_ line: ArraySlice<UInt8>) -> Bool {
        // A line that is not JSON is not a record.
        guard let record = try? JSON(parsing: Array(line), source: path)["record"]?.string else { return false }
        return ["decided", "intent", "attempt", "undoing"].contains(record)
    }

    private func apply(_ json: JSON, to state: inout State) throws {
        switch json["record"]?.string {
        case "begin": if let plan = json["plan"] { state.plan = try Plan(json: plan, source: path) }
        case "decided":
            state.decided = (json["schemas"]?.members ?? []).reduce(into: [:]) { schemas, member in
                schemas[member.name] = member.value.integer.map { UInt64(bitPattern: $0) }
            }
        case "attempt": state.attempts += 1
        case "intent":
            if let effect = json["effect"], let intent = json["intent"] {
                state.intents.append((try Effect(json: effect, source: path), intent))
            }
        case "releasing": state.released += [json["consumer"]?.string ?? ""]
        case "undoing": state.undoing = json["why"]?.string ?? ""
        case "undone", "committed": state.isOver = true
        default:
            throw MoultError(
                .stuck, .stuck, what: "\(path) has a record that this version of moult cannot read",
                why: "another version of moult may have written it",
                now: "Finish the update with the version that started it: moult recover")
        }
    }
}
