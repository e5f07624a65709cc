internal import MoultFiles

/// Notifies a consumer in one way: by a command, a signal, a systemd unit or a callback. `release` returns once the consumer
/// has released its databases, and throws if it has not. `reload` throws if the consumer could not be notified or reports a
/// failure.
protocol ConsumerChannel: Sendable {
    var summary: String { get }
    func canRelease(_ call: ConsumerCall) throws -> Bool
    func release(_ call: ConsumerCall) throws
    func reload(_ call: ConsumerCall) throws
}

extension ConsumerChannel {
    func canRelease(_ call: ConsumerCall) throws -> Bool { true }
}

struct ConsumerCall {
    let message: ConsumerMessage
    /// The store's directory, in which commands run.
    let directory: String
    let deadline: ContinuousClock.Instant
    /// For a reload: whether this consumer was asked to release its databases before.
    let wasReleased: Bool
    /// Throws if the user cancels with Ctrl-C.
    let stop: () throws -> Void

    var time: Duration { max(.zero, deadline - .now) }
    var isOver: Bool { ContinuousClock.now >= deadline }
    var paths: [String] { message.databases.map(\.path) }
}

extension Consumer.Means {
    var channel: any ConsumerChannel {
        switch self {
        case .command(let command): command
        case .signal(let signal): signal
        case .unit(let unit): unit
        case .app(let app): app
        }
    }
}

extension Consumer {
    /// The kind of notification: `command`, `signal`, `systemd` or `app`.
    package var by: String { means.channel.summary }
}

extension AppConsumer: ConsumerChannel {
    var summary: String { "app" }
    func release(_ call: ConsumerCall) throws { try wait(call, releasing) }
    func reload(_ call: ConsumerCall) throws { try wait(call, reloading) }

    private func wait(_ call: ConsumerCall, _ body: @escaping @Sendable (ConsumerMessage) async throws -> Void) throws {
        let message = call.message
        guard try Threads.wait(for: call.time, { try await body(message) }) else {
            throw ConsumerFault("the \(message.kind.rawValue) callback of this process did not return in time")
        }
    }
}

extension UnitConsumer: ConsumerChannel {
    var summary: String { "systemd" }

    /// Returns whether the unit is running. A unit that is not running is neither stopped nor started.
    func canRelease(_ call: ConsumerCall) throws -> Bool {
        try Subprocess.run(["systemctl", "is-active", "--quiet", unit], within: call.time).succeeded
    }

    func release(_ call: ConsumerCall) throws { try CommandConsumer.run(["systemctl", "stop", unit], call) }

    func reload(_ call: ConsumerCall) throws {
        let verb = call.wasReleased ? "start" : "try-reload-or-restart"
        try CommandConsumer.run(["systemctl", verb, unit], call)
    }
}
