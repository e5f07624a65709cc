package import MoultBasics
internal import MoultSQLite
package import StepKit

package enum Event: Sendable {
    package enum Pass: String, Sendable { case prepare, apply, undo }
    case phase(Pass, Phase)
    case progress(PrepareContext.Progress)
    case done(Pass, Effect)
    /// The decision has been made: after a crash, recovery finishes the update.
    case decided
    case recovered(CrashRecovery.Result)
    case consumer(String, ConsumerMessage.Kind)
    case warning(Advice)
}

package struct Watcher: Sendable {
    package let tell: @Sendable (Event) -> Void
    /// Polled often before the decision. Once it returns true, the update ends without changes.
    package let shouldStop: @Sendable () -> Bool

    package init(
        tell: @escaping @Sendable (Event) -> Void = { _ in }, shouldStop: @escaping @Sendable () -> Bool = { false }
    ) {
        self.tell = tell
        self.shouldStop = shouldStop
    }

    package func stopIfAsked() throws {
        if shouldStop() {
            throw MoultError(
                .interrupted, what: "interrupted before anything was changed",
                now: "Nothing needs to be repaired. Run the command again at any time.")
        }
    }
    /// Runs work before the decision. Its SQL statements also stop if this is asked, so that a release cannot make it endless.
    func stoppingStatements<R>(_ body: () throws -> R) throws -> R {
        do { return try StatementStop(if: shouldStop).applying(body) } catch {
            try stopIfAsked()
            throw error
        }
    }
}
