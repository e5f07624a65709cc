internal import MoultBasics
internal import MoultFiles
internal import StepKit

/// Does the changes of living databases, to which apps write. What SQLite commits comes last, in `finish`.
final class LivingChanges {
    let transaction: Transaction
    let plan: Plan
    let inodes: [String: UInt64]

    init(transaction: Transaction, plan: Plan, inodes: [String: UInt64]) {
        (self.transaction, self.plan, self.inodes) = (transaction, plan, inodes)
    }

    func perform(_ effect: Effect) throws {
        switch effect.change {
        default: break
        }
    }

    func revert(_ effect: Effect) throws {
        switch effect.change {
        default: break
        }
    }

    func finish() throws {}
}
