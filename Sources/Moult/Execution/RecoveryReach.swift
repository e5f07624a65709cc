internal import MoultBasics
internal import MoultFiles
internal import StepKit

/// What the recovery of an update does beyond the files in its store: the programs that it runs, and the files elsewhere that it
/// changes. The journal, the settings and the links of a store may come from an archive, so a reader does none of this.
struct RecoveryReach {
    private let layout: StoreLayout
    private let update: String
    private var programs: [String] = []
    private var places: [String] = []

    var isContained: Bool { programs.isEmpty && places.isEmpty }

    init(_ plan: Plan, _ transaction: Transaction, steps: StepSet, consumers: [Consumer]) throws {
        layout = transaction.layout
        update = plan.words
        programs = steps.programs(of: plan).map { "the step \($0.name), which \($0.summary)" }
        // A call that no consumer answers any more runs nothing, but its consumer may be in the settings of the next command.
        for call in plan.calls where call.by != Consumer.byApp {
            let how = consumers.first { call.isOf($0) }?.programs ?? ""
            programs.append("the consumer \(call.consumer)" + (how.isEmpty ? "" : ", with \(how)"))
        }
        if try Files.facts(layout.hidden)?.kind == .link { try add(link: layout.hidden) }
        for effect in plan.effects {
            let traits = effect.change.traits
            for path in traits.paths {
                try add(path, writes: traits.handling == .written || traits.handling == .setAside)
            }
            if case .custom(_, _, let with) = effect.change {
                places += (with["writes"]?.array ?? []).compactMap(\.string)
            }
        }
        places = places.reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
    }

    private mutating func add(_ path: String, writes: Bool) throws {
        let place = layout.file(path)
        if path.isAbsolutePath { return places.append(path) }
        for name in [place] + (writes ? SidecarSuffixes.all.map { place + $0 } : []) {
            if try Files.facts(name)?.kind == .link { try add(link: name) }
        }
    }

    private mutating func add(link path: String) throws {
        let target = try Files.target(ofLink: path) ?? ""
        let parts = target.pathParts()
        // The link to a read-only database is replaced, and not followed.
        if path != layout.hidden, parts.count == 3, parts[0] == ".moult", parts[1] == "current", parts[2] != ".." {
            return
        }
        places.append("\(Files.resolvedIfThere(path)) (through the link \(path))")
    }

    var sentence: String? {
        let parts = [
            programs.isEmpty ? nil : "runs \(programs.joined(separator: "; "))",
            places.isEmpty ? nil : "changes files outside the store: \(places.joined(separator: ", "))",
        ].compactMap(\.self)
        return parts.isEmpty ? nil : "the recovery of \(update) in \(layout.root) \(parts.joined(separator: ", and "))"
    }
}

extension Consumer {
    /// How a call describes a consumer that is a callback of the process itself.
    static let byApp = "app"

    fileprivate var programs: String {
        switch means {
        case .command(let command):
            [command.release, command.reload].compactMap { $0.map(shellLine) }.joined(separator: " and ")
        case .signal(let signal): "a signal to the process in \(signal.pidFile)"
        case .unit(let unit): "systemctl for \(unit.unit)"
        case .app: ""
        }
    }
}

extension CrashRecovery {
    /// Returns whether recovery of all unfinished updates only changes files in the directory of the store.
    func isContained() throws -> Bool {
        try Transaction.unfinished(layout).allSatisfy { transaction in
            let state: Journal.State
            do { state = try transaction.checkedState(cacheRoot: nil) } catch {
                // `recover` reports a journal that is invalid or cannot be read.
                return false
            }
            return try state.plan.map { try reach($0, transaction).isContained } ?? true
        }
    }

    func reach(_ plan: Plan, _ transaction: Transaction) throws -> RecoveryReach {
        try RecoveryReach(plan, transaction, steps: steps, consumers: consumers)
    }
}
