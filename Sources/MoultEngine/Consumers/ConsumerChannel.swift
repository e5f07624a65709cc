package import MoultStore

/// The way to a consumer: each call returns when the consumer has done what it was asked for, and throws if it has not.
protocol ConsumerChannel: Sendable {
    /// Its description in a plan.
    var summary: String { get }
    /// Whether it has anyone who could release.
    func isThere(_ call: ConsumerCall) throws -> Bool
    func release(_ call: ConsumerCall) throws
    func reload(_ call: ConsumerCall) throws
}

extension ConsumerChannel {
    func isThere(_ call: ConsumerCall) throws -> Bool { true }
}

/// One call of one consumer.
struct ConsumerCall {
    let message: ConsumerMessage
    /// The store's directory, in which programs run.
    let directory: String
    let deadline: ContinuousClock.Instant
    /// For a reload: whether this consumer had been told to let go.
    let wasReleased: Bool
    /// Throws if the person at the keyboard wants it to end.
    let stop: () throws -> Void

    var time: Duration { max(.zero, deadline - .now) }
    var isOver: Bool { ContinuousClock.now >= deadline }

    /// The files of the databases that it is about.
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
    /// The kind of notification, in a word: `command`, `signal`, `systemd` or `app`.
    package var by: String { means.channel.summary }
}
