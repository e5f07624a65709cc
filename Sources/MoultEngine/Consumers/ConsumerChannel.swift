package import MoultStore

/// Notifies a consumer by one kind of call. Each call returns when the consumer has done what was requested, and throws if it
/// has not.
protocol ConsumerChannel: Sendable {
    /// The description shown in a plan.
    var summary: String { get }
    /// Returns whether a process exists that can be asked to release its databases.
    func canRelease(_ call: ConsumerCall) throws -> Bool
    func release(_ call: ConsumerCall) throws
    func reload(_ call: ConsumerCall) throws
}

extension ConsumerChannel {
    func canRelease(_ call: ConsumerCall) throws -> Bool { true }
}

/// One call to one consumer.
struct ConsumerCall {
    let message: ConsumerMessage
    /// The store's directory, which is the working directory of programs.
    let directory: String
    let deadline: ContinuousClock.Instant
    /// For a reload: whether this consumer had been asked to release.
    let wasReleased: Bool
    /// Throws if the user cancels with Ctrl-C.
    let stop: () throws -> Void

    var time: Duration { max(.zero, deadline - .now) }
    var isOver: Bool { ContinuousClock.now >= deadline }

    /// The files of the affected databases.
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
