/// Who has databases of a store open and is told: to let go before they change, and to open them again after.
package struct Consumer: Sendable, Equatable {
    /// What plans and errors call it.
    package var name: String
    /// The databases that it is concerned with; nil for all of them.
    package var databases: [String]?
    /// The seconds that it has for each call.
    package var timeout: Int
    /// Whether a release that it cannot reload goes out of service again.
    package var isFatal: Bool
    package var means: Means

    /// How it is told.
    package enum Means: Sendable, Equatable {
        case command(CommandConsumer)
        case signal(SignalConsumer)
        case unit(UnitConsumer)
        /// It is part of the app that makes the update.
        case app(AppConsumer)

        var channel: any ConsumerChannel {
            switch self {
            case .command(let command): command
            case .signal(let signal): signal
            case .unit(let unit): unit
            case .app(let app): app
            }
        }
    }

    package static let defaultTimeout = 10

    package init(
        name: String, databases: [String]? = nil, timeout: Int = defaultTimeout, isFatal: Bool = false, means: Means
    ) {
        (self.name, self.databases, self.timeout) = (name, databases, timeout)
        (self.isFatal, self.means) = (isFatal, means)
    }

    /// How it is told, in a word: `command`, `signal`, `systemd` or `app`.
    package var by: String { means.channel.summary }

    func isConcerned(with database: String) -> Bool { databases?.contains(database) ?? true }
}

/// The way to a consumer: each call returns when the consumer has done what it was asked for, and throws if it has not.
protocol ConsumerChannel: Sendable {
    /// What the plan says of it.
    var summary: String { get }
    /// Whether there is anybody who could let go.
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
