internal import MoultBasics

/// A process or callback that uses a store's databases. moult asks it to release them before they change, and to reopen them
/// afterwards.
package struct Consumer: Sendable, Equatable {
    package var name: String
    package var databases: [String]?
    package var timeout = defaultTimeout
    /// Whether a release is rolled back if the consumer cannot reload it.
    var isFatal = false
    package var means: Means

    package enum Means: Sendable, Equatable {
        case command(CommandConsumer)
        case signal(SignalConsumer)
        case unit(UnitConsumer)
        case app(AppConsumer)
    }

    static let defaultTimeout = 10

    func isConcerned(with database: String) -> Bool { databases?.contains(database) ?? true }
}

extension Consumer {
    /// Reads the consumers in `moult.json`, in the order in which they reload.
    static func read(_ fields: Fields) throws -> [Consumer] {
        var names: Set<String> = []
        return try fields.objects("consumers").map { part in
            let consumer = try Consumer(part)
            if !names.insert(consumer.name).inserted {
                throw part.fail("name", "is also the name of another consumer: \"\(consumer.name)\"")
            }
            return consumer
        }
    }

    private init(_ fields: Fields) throws {
        let name = try fields.string("name")
        if name.isEmpty { throw fields.fail("name", "must not be empty") }
        self.init(name: name, means: try Self.means(fields))
        databases = try fields.optionalStrings("databases")
        timeout = try fields.optionalNumber("timeout", in: Settings.timeouts) ?? timeout
        isFatal = try fields.word("onReloadFailure", OnReloadFailure.self) == .rollBack
        try fields.refuseUnknown()
    }

    private enum OnReloadFailure: String, CaseIterable {
        case report
        case rollBack = "roll-back"
    }

    private static func means(_ fields: Fields) throws -> Means {
        var means: [Means] = []
        if let part = try fields.optionalObject("command") { means.append(.command(try command(part))) }
        if let part = try fields.optionalObject("signal") { means.append(.signal(try signal(part))) }
        if let unit = try fields.optionalString("systemd") {
            if unit.isEmpty || unit.hasPrefix("-") { throw fields.fail("systemd", "must be the name of a unit") }
            means.append(.unit(UnitConsumer(unit: unit)))
        }
        guard means.count == 1 else {
            let given = ["command", "signal", "systemd"].filter { fields.json($0) != nil }
            throw fields.fail(
                given.first ?? "command",
                given.isEmpty
                    ? "is missing, and so are signal and systemd"
                    : "cannot be combined with \(given.dropFirst().joined(separator: " and "))",
                now: "Choose one way to notify the consumer.")
        }
        return means[0]
    }

    private static func command(_ fields: Fields) throws -> CommandConsumer {
        let command = CommandConsumer(release: try words(fields, "release"), reload: try words(fields, "reload"))
        if command == CommandConsumer() { throw fields.fail("reload", "is missing, and so is release") }
        try fields.refuseUnknown()
        return command
    }

    /// Returns a program and its arguments, which run without a shell.
    private static func words(_ fields: Fields, _ name: String) throws -> [String]? {
        guard let words = try fields.optionalStrings(name) else { return nil }
        if words.isEmpty || words.contains("") { throw fields.fail(name, "must be a program and its arguments") }
        return words
    }

    private static func signal(_ fields: Fields) throws -> SignalConsumer {
        let path = try fields.string("pidFile")
        guard path.isAbsolutePath else { throw fields.fail("pidFile", "must be an absolute path") }
        let signal = SignalConsumer(
            pidFile: path, release: try fields.word("release", SignalConsumer.Signal.self),
            reload: try fields.word("reload", SignalConsumer.Signal.self) ?? .hangup)
        try fields.refuseUnknown()
        return signal
    }
}

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

package final class AppConsumer: Sendable, Equatable {
    package let releasing: @Sendable (ConsumerMessage) async throws -> Void
    package let reloading: @Sendable (ConsumerMessage) async throws -> Void

    package init(
        release: @escaping @Sendable (ConsumerMessage) async throws -> Void,
        reload: @escaping @Sendable (ConsumerMessage) async throws -> Void
    ) { (releasing, reloading) = (release, reload) }

    package static func == (a: AppConsumer, b: AppConsumer) -> Bool { a === b }
}
