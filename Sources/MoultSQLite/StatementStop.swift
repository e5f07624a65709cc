import MoultFiles
import Synchronization

/// Lets a caller stop running statements and `LongRead`s, because a release may have some that never end with a user's rows.
///
/// It applies to all connections that the body of `applying` opens, until the body returns: afterwards, a statement may belong to an
/// undo, or the decision was made.
package final class StatementStop: Sendable {
    @TaskLocal static var current: StatementStop?

    private let isAsked: @Sendable () -> Bool
    private let isOver = Atomic(false)

    package init(if isAsked: @escaping @Sendable () -> Bool) { self.isAsked = isAsked }

    /// Whether the running statement must stop.
    var isRequested: Bool { !isOver.load(ordering: .relaxed) && isAsked() }

    package func applying<R>(_ body: () throws -> R) rethrows -> R {
        defer { isOver.store(true, ordering: .relaxed) }
        return try LongRead.stopping(if: { self.isRequested }) {
            try Self.$current.withValue(self, operation: body)
        }
    }
}
