/// A process or callback that uses a store's databases. moult asks it to release them before they change, and to reopen them
/// afterwards.
package struct Consumer: Sendable, Equatable {
    /// The name of the consumer in plans and errors.
    package var name: String
    /// The databases that the consumer uses; nil for all of them.
    package var databases: [String]?
    /// The timeout of each call, in seconds.
    package var timeout = defaultTimeout
    /// Whether a release is rolled back if the consumer cannot reload it.
    var isFatal = false
    package var means: Means

    /// The kind of notification.
    package enum Means: Sendable, Equatable {
        case command(CommandConsumer)
        case signal(SignalConsumer)
        case unit(UnitConsumer)
        /// A callback in the app that makes the update.
        case app(AppConsumer)
    }

    static let defaultTimeout = 10

    func isConcerned(with database: String) -> Bool { databases?.contains(database) ?? true }
}
