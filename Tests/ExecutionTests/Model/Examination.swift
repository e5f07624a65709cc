import Moult
import MoultBasics
import MoultFiles
import TestSupport

/// A recorded flow, and the conditions that must hold after each power failure.
struct Examination {
    let flow: Flow
    let scratch: Scratch
    let releases: Flow.Releases
    let store: String
    let recording: Recording
    /// The states at the beginning and at the end, each with the number of updates in the history.
    private let ends: [(name: String, state: StoreState, updates: Int)]

    init(_ flow: Flow) throws {
        self.flow = flow
        // In memory, where syncing takes no time and inodes are not reused.
        scratch = try Scratch(in: "/dev/shm")
        releases = try Flow.Releases(flow, in: scratch.path("releases"))
        store = scratch.path("store")
        let moult = try BuiltMoult.path()
        try flow.begin(store, releases, moult)
        let before = (try StoreState(store, scratch: scratch), try Self.updates(store).count)
        recording = try Recording(of: [moult] + flow.command(store, releases), in: store, scratch: scratch)
        let after = (try StoreState(store, scratch: scratch), try Self.updates(store).count)
        ends = [("old", before.0, before.1), ("new", after.0, after.1)]
    }

    /// Returns the completed updates, according to the history.
    private static func updates(_ store: String) throws -> [History.Entry] {
        try History.read(StoreLayout(root: store)).entries.filter { [.done, .finished].contains($0.outcome) }
    }

    /// Returns the problem after a power failure that leaves this disk; nil for a sound store. `isOver` means that the
    /// command had completed.
    func examine(_ disk: Disk, isOver: Bool) -> String? {
        do {
            try make(disk)
            if flow != .settling, let finding = try faultBeforeRecovery() { return finding }
            return try settled(isOver: isOver)
        } catch { return "\(error)" }
    }

    private func make(_ disk: Disk) throws {
        try Files.removeTree(store)
        try Files.makeDirectory(store)
        try Renumbering(recording: recording, made: disk.make(in: store)).renumber(disk)
    }

    /// Returns the problem that a process finds before recovery: the read-only databases must be from a single release.
    private func faultBeforeRecovery() throws -> String? {
        let found = try StoreState(store, scratch: scratch).sealed
        let isWhole = ends.contains { end in found.allSatisfy { end.state.sealed[$0.key] ?? $0.value == $0.value } }
        // The links of a first install have no target until recovery.
        let isMissing = ends[0].state.sealed.keys.contains { found[$0] == nil }
        return isWhole && !isMissing
            ? nil : "before recovery, the read-only databases are not from one release: \(found)"
    }

    private func settled(isOver: Bool) throws -> String? {
        let orchestrator = try Orchestrator(root: store, steps: .builtIn)
        _ = try orchestrator.recover()
        let state = try StoreState(store, scratch: scratch)
        let possible = isOver ? Array(ends.suffix(1)) : ends
        guard let end = possible.first(where: { $0.state == state }) else {
            let lacks = possible.map { "\($0.name) (\(state.differences(to: $0.state).joined(separator: "; ")))" }
            return "after recovery, the state is not \(lacks.joined(separator: ", nor "))"
        }
        // A power failure may remove lines of the history, but nothing else.
        let updates = try Self.updates(store)
        if updates.count > end.updates
            || (updates.count == end.updates && updates.last?.to != updates.last.map { _ in state.current ?? "" })
        {
            return
                "after recovery, the state is \(end.name), but the history ends with \(updates.last?.to ?? "nothing")"
        }
        let tree = try Tree(store)
        guard try orchestrator.recover().isEmpty, try Tree(store) == tree else {
            return "a second settling changes something"
        }
        if state.current != nil, flow.isReadable || end.name == "new" {
            let findings = try Verifier(StoreSnapshot(orchestrator.layout)).verify(deep: true).compactMap(\.finding)
            if !findings.isEmpty { return "verify: \(findings)" }
        }
        try flow.again(store, releases)
        if flow == .reset { return nil }
        let differences = try StoreState(store, scratch: scratch).differences(to: ends[1].state)
        return differences.isEmpty ? nil : "again: \(differences)"
    }
}
