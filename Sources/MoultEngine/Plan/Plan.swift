package import MoultBasics
internal import MoultFiles
package import MoultStore
package import StepKit

/// A planned update: pure data, printed by `plan` and executed by `apply`.
package struct Plan: Sendable, Equatable {
    package static let format = 1

    package var id: String
    package var created: Timestamp
    package var purpose: PlanContext.Purpose
    package var store: String
    package var product: String
    package var from: Generation.Reference?
    package var to: Generation.Reference
    package var manifestPath: String?
    /// Where it is fetched from; nil if its manifest is on this machine and was named.
    package var origin: Origin?
    /// The bundle, if something must be unpacked from it.
    package var bundle: Bundle?
    /// The members that are made without it.
    package var reuse: [Reuse] = []
    package var trust: String
    /// How the release may be taken, as asked for.
    package var request: Request
    package var effects: [Effect]
    /// The consumers that will be called, in the order in which they reload.
    package var calls: [Call] = []
    /// How each external step was kept from changing anything while it planned.
    package var steps: [Enforcement] = []
    /// Bytes that staging needs on the store's file system.
    package var needs: Int
    /// The facts that the plan relies on; if any of them has changed, the plan is stale.
    package var facts: [Fact]
    package var warnings: [String]
    /// The hold that a rollback sets.
    package var hold: Hold?
    /// The hold on the same release that this one replaces; it comes back if the rollback is undone.
    package var replacedHold: Hold?

    package struct Enforcement: Sendable, Equatable {
        package var step: String
        package var text: String
        package init(step: String, text: String) { (self.step, self.text) = (step, text) }
    }

    package struct Bundle: Sendable, Equatable {
        package var path: String
        package var size: Int
        /// How many bytes of it must be fetched first.
        package var missing = 0
    }

    /// Where a release was found that comes from elsewhere.
    package struct Origin: Sendable, Equatable {
        /// The feed, or the manifest itself if that was named.
        package var place: Address
        /// The feed's serial; nil without a feed.
        package var serial: Int?
        /// The manifest's name next to the feed, its size and digest.
        package var manifest: String
        package var size: Int
        package var sha256: String
        /// The releases that follow this one on the way to the newest.
        package var then: [Version]
        /// Remarks on the choice for the operator.
        package var notes: [String]

        package init(
            place: Address, serial: Int?, manifest: String, size: Int, sha256: String, then: [Version],
            notes: [String]
        ) {
            (self.place, self.serial, self.manifest, self.size) = (place, serial, manifest, size)
            (self.sha256, self.then, self.notes) = (sha256, then, notes)
        }
    }

    package struct Request: Sendable, Equatable {
        package var follow: Policy.Follow
        package var allowDowngrade: Bool
        package var takesOlder: Bool { follow.takesOlder(allowDowngrade) }
        package var app: Version?
        package var cacheRoot: String?
        package var takeOver: Set<String> = []
        package var acceptUnpreserved = false
        package var checkTimeout: Int?
        /// Whether a rollback may go to a release that is on hold.
        package var force = false
    }

    /// One thing that was looked at: a path, which of its fields, and what was found.
    package struct Fact: Sendable, Equatable {
        package var path: String
        package var field: String
        package var value: String
        package init(path: String, field: String, value: String) {
            (self.path, self.field, self.value) = (path, field, value)
        }
    }

    /// Whether anything of the store will be another afterwards.
    package var changesStore: Bool { effects.contains(where: \.changesStore) }

    /// The one database that a reset is about, and why.
    package var reset: (database: String, why: String)? {
        for effect in effects where purpose == .reset {
            guard let database = effect.database else { continue }
            switch effect.change {
            case .quarantine(_, let why, _): return (database, why)
            case .restoreRows(_, let table, let set, _, _): return (database, "rows of \(table) from \(set)")
            default: continue
            }
        }
        return nil
    }

    /// Why the operator rolled back, if that is known.
    package var rollbackReason: String? { hold.flatMap { $0.reason == Hold.rolledBack ? nil : $0.reason } }

    /// Whether it puts content back from quarantine, and does not start with an empty database.
    private var restores: Bool {
        effects.contains { effect in
            switch effect.change {
            case .restoreRows: true
            case .quarantine(_, _, let reason): reason == .restored
            default: false
            }
        }
    }

    private var verb: String { restores ? "restore" : purpose.rawValue }

    /// Its name in the history.
    package var action: String { reset.map { "\(verb) \($0.database)" } ?? purpose.rawValue }

    /// Its description: `update to 2.0.0`, or `replacement of app.db` in the store of a single file.
    package var title: String {
        if let reset { return "\(verb) of \(reset.database)" }
        guard let file else { return "\(verb) to \(to.version)" }
        return (purpose == .rollback ? "undo of the replacement of " : "replacement of ") + file
    }

    /// The state that an undone update leaves: `1.0.0 is unchanged`.
    package var asBefore: String {
        if let file { return "\(file) is unchanged" }
        return "\(from.map { "\($0.version) is" } ?? "nothing is") unchanged"
    }

    /// The name of the file of a store that has no other; its users have never heard of releases.
    private var file: String? {
        // The store's path was absolute when the plan was made.
        (try? StoreLayout(root: store))?.onlyFile.map(Files.name(of:))
    }

    /// The paths at which living files are made, or get new content.
    package var made: [String] {
        effects.compactMap { effect in
            switch effect.change {
            case .create(let path, _), .replace(let path, _, _, _, _, _, _): path
            default: nil
            }
        }
    }

    /// The paths where another file takes the place of the old one, which is in staging afterwards.
    var exchanged: [String] {
        effects.compactMap { if case .replace(let path, _, _, .exchange, _, _, _) = $0.change { path } else { nil } }
    }

    package func effects(of phase: Phase) -> [Effect] { effects.filter { $0.phase == phase } }

    /// The members of the release that must be staged.
    package var members: [String] {
        var members: [String] = []
        for member in effects.flatMap(\.members) where !members.contains(member) { members.append(member) }
        return members
    }

    /// How many databases become what; each counts once.
    package struct Counts: Sendable, Equatable {
        package var replaced = 0
        package var added = 0
        package var changed = 0
        package var removed = 0
        package var unchanged = 0
    }

    /// A cache that a later update recreates.
    package struct Pending: Sendable, Equatable {
        package let database: String
        package let why: String

        package var text: String {
            "the cache \(database) is not up to date: \(why). The next update recreates it, or: moult apply"
        }
        package var json: JSON { ["database": .string(database), "why": .string(why)] }
    }

    package var pending: [Pending] {
        effects.compactMap { effect in
            guard let database = effect.database, case .postpone(_, let why) = effect.change else { return nil }
            return Pending(database: database, why: why)
        }
    }

    package var counts: Counts {
        var (outgoing, incoming, changed, kept) = (Set<String>(), Set<String>(), Set<String>(), Set<String>())
        for effect in effects {
            guard let database = effect.database else { continue }
            switch effect.change {
            case .retire, .adopt, .quarantine: outgoing.insert(database)
            case .seal, .linkInPlace, .restore, .create: incoming.insert(database)
            case .replace:
                outgoing.insert(database)
                incoming.insert(database)
            case .migrate, .move, .restoreRows: changed.insert(database)
            case .keep, .postpone: kept.insert(database)
            default: break
            }
        }
        let replaced = incoming.intersection(outgoing)
        return Counts(
            replaced: replaced.count, added: incoming.subtracting(outgoing).count, changed: changed.count,
            removed: outgoing.subtracting(incoming).subtracting(kept).count, unchanged: kept.count)
    }
}
