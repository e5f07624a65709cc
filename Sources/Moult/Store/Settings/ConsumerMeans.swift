/// A consumer that is notified by running programs. They run without a shell, get the message as JSON on standard input and its
/// short form in the environment, and report success by their exit status.
package struct CommandConsumer: Sendable, Equatable {
    package var release: [String]?
    package var reload: [String]?
}

/// A consumer that is notified by signals; its process ID is in its PID file.
package struct SignalConsumer: Sendable, Equatable {
    package enum Signal: String, CaseIterable, Sendable {
        case hangup = "HUP"
        case interrupt = "INT"
        case quit = "QUIT"
        case terminate = "TERM"
        case user1 = "USR1"
        case user2 = "USR2"
        case window = "WINCH"
    }

    package var pidFile: String
    /// The signal that asks the process to release its databases; nil if no signal does.
    package var release: Signal?
    package var reload: Signal = .hangup
}

/// A consumer that is a systemd unit: it is stopped while a writable database is replaced, and reloaded after other changes.
package struct UnitConsumer: Sendable, Equatable {
    package var unit: String
}

/// A consumer that is part of this process.
package final class AppConsumer: Sendable, Equatable {
    package let releasing: @Sendable (ConsumerMessage) async throws -> Void
    package let reloading: @Sendable (ConsumerMessage) async throws -> Void

    package init(
        release: @escaping @Sendable (ConsumerMessage) async throws -> Void,
        reload: @escaping @Sendable (ConsumerMessage) async throws -> Void
    ) {
        (releasing, reloading) = (release, reload)
    }

    package static func == (a: AppConsumer, b: AppConsumer) -> Bool { a === b }
}
