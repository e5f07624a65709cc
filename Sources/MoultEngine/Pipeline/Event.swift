internal import MoultBasics
package import MoultStore
package import StepKit

/// The events of an update.
package enum Event: Sendable {
    package enum Pass: String, Sendable { case prepare, apply, undo }
    case phase(Pass, Phase)
    case progress(PrepareContext.Progress)
    /// An effect of the plan, done or undone.
    case done(Pass, Effect)
    /// The decision has been made: from here on only forward.
    case decided
    /// An update that was left unfinished has been settled.
    case settled(CrashRecovery.Result)
    /// A consumer has done what it was asked for.
    case consumer(String, ConsumerMessage.Kind)
    case warning(String)
}

/// How an update is watched and stopped.
package struct Watcher: Sendable {
    package let tell: @Sendable (Event) -> Void
    /// Asked often before the decision; once it says so, the update ends and nothing was changed.
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
}
