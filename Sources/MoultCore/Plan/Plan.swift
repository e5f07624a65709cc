package import MoultBasics
package import StepKit

/// What an update will do: pure data, printed by `plan` and executed by `apply`.
package struct Plan: Sendable, Equatable {
    package static let format = 1

    package var id: String
    package var created: Timestamp
    package var purpose: PlanContext.Purpose
    package var store: String
    package var product: String
    package var from: Side?
    package var to: Side
    package var manifestPath: String?
    package var bundle: Bundle?
    package var trust: String
    /// How the release may be taken, as asked for.
    package var request: Request
    package var effects: [Effect]
    /// Bytes that staging needs on the store's file system.
    package var needs: Int
    /// What the plan relies on; if any of it has changed, the plan is stale.
    package var facts: [Fact]
    package var warnings: [String]
    /// The hold that a rollback sets.
    package var hold: Settings.Hold?

    package struct Side: Sendable, Equatable {
        package var version: Version
        package var generation: String
        package init(version: Version, generation: String) { (self.version, self.generation) = (version, generation) }
    }

    package struct Bundle: Sendable, Equatable {
        package var path: String
        package var size: Int
    }

    package struct Request: Sendable, Equatable {
        package var follow: Policy.Follow
        package var allowDowngrade: Bool
        package var app: Version?
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

    package func effects(of phase: Phase) -> [Effect] { effects.filter { $0.phase == phase } }

    /// The members of the bundle that must be unpacked.
    package var members: [String] {
        var members: [String] = []
        for member in effects.flatMap(\.members) where !members.contains(member) { members.append(member) }
        return members
    }

    /// The databases that are replaced or made, and those that stay.
    package var counts: (replaced: Int, created: Int, unchanged: Int) {
        var counts = (replaced: 0, created: 0, unchanged: 0)
        for effect in effects {
            switch effect.change {
            case .seal, .refer, .restore, .replace, .migrate: counts.replaced += 1
            case .create: counts.created += 1
            case .keep: counts.unchanged += 1
            default: break
            }
        }
        return counts
    }
}
