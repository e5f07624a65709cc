/// Interrupts a recording by a power failure at every call, with the results that the rules of the disk allow.
struct Trial {
    let examination: Examination
    var cuts = PowerCuts()
    /// The number of states to try, spread over all calls; nil for all states.
    var most: Int?
    /// Selects the paths whose syncs the trial ignores; with `isLastOnly`, it ignores only the last of these syncs. Only the
    /// losses that result from this are tried.
    var unsynced: ((String) -> Bool)?
    var isLastOnly = false
    /// The number of findings after which the trial stops.
    var enough = 5

    struct Report {
        /// The numbers of calls before the power failure, of possible states, and of tried states.
        var calls = 0
        var possible = 0
        var tried = 0
        var findings: [String] = []
    }

    private struct State {
        let call: Int
        let disk: Disk
        let fates: [UnsyncedDisk.Fate]
        let isOver: Bool
    }

    func run(seed: UInt64 = 1) throws -> Report {
        var chance = Chance(seed: seed)
        let operations = operationsWithoutSyncs
        var states = try states(operations, &chance)
        var report = Report(calls: operations.count, possible: states.count)
        if let most, states.count > most {
            // Picks a random state from each of `most` groups of about equal size.
            states = (0..<most).map { index in
                let (from, to) = (index * states.count / most, (index + 1) * states.count / most)
                return states[from + chance.below(to - from)]
            }
        }
        for state in states where report.findings.count < enough {
            report.tried += 1
            guard let finding = examination.examine(state.disk, isOver: state.isOver) else { continue }
            let last = state.call > 0 ? operations[state.call - 1].text : "nothing"
            report.findings.append(
                "\(examination.flow.rawValue), cut after call \(state.call) (\(last)): \(finding)\n\(try lost(state, operations))"
            )
        }
        return report
    }

    /// Returns the states that a power failure may leave, without duplicates, in the order of the calls.
    private func states(_ operations: [FileOperation], _ chance: inout Chance) throws -> [State] {
        var disk = UnsyncedDisk(examination.recording.before)
        var known: Set<Int> = []
        var states: [State] = []
        let lost = try lostWithoutSync()
        for call in 0...operations.count {
            if call > 0 { try disk.perform(operations[call - 1]) }
            let isOver = call == operations.count
            if isOver { known = [] }
            let all =
                unsynced == nil
                ? cuts.fates(of: disk.pending, &chance)
                : [disk.pending.map { $0.isSynced(by: lost) ? .lost : .kept }]
            for fates in all {
                let left = disk.disk(after: fates)
                guard known.insert(left.fingerprint).inserted else { continue }
                states.append(State(call: call, disk: left, fates: fates, isOver: isOver))
            }
        }
        return states
    }

    private var operationsWithoutSyncs: [FileOperation] {
        var operations = examination.recording.operations
        let syncs = operations.indices.filter { index in
            if case .sync(let path) = operations[index] { unsynced?(path) == true } else { false }
        }
        for index in syncs.suffix(isLastOnly ? 1 : syncs.count).reversed() { operations.remove(at: index) }
        return operations
    }

    /// Returns the files and directories whose sync is ignored.
    private func lostWithoutSync() throws -> Set<Disk.ID> {
        var disk = UnsyncedDisk(examination.recording.before)
        var found: Set<Disk.ID> = []
        for operation in examination.recording.operations {
            if case .sync(let path) = operation, unsynced?(path) == true, let id = try disk.live.id(path) {
                found.insert(id)
            }
            try disk.perform(operation)
        }
        return found
    }

    /// Describes the changes that were pending when the power failed, each with its result.
    private func lost(_ state: State, _ operations: [FileOperation]) throws -> String {
        var disk = UnsyncedDisk(examination.recording.before)
        for operation in operations.prefix(state.call) { try disk.perform(operation) }
        return zip(disk.pending, state.fates).map { "    \($1): \($0.text)" }.joined(separator: "\n")
    }
}

extension UnsyncedDisk.Change {
    fileprivate var text: String {
        switch self {
        case .names(let names, _):
            names.map { "\($0.key.directory)/\($0.key.name) is \($0.value.map { "\($0)" } ?? "gone")" }.sorted().joined(
                separator: ", ")
        case .bytes(let file, let offset, let bytes): "\(bytes.count) bytes at \(offset) of \(file)"
        case .size(let file, let size): "\(size) bytes in \(file)"
        }
    }
}
