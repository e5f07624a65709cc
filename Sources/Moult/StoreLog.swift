internal import MoultBasics

/// Where a store writes what it does: a level, a message and metadata, as in swift-log.
///
///     let store = Store(at: path, log: StoreLog { entry in print(entry.level, entry.message, entry.metadata) })
///
/// The function is called on the thread of the update, and must not wait for another function of the store.
public struct StoreLog: Sendable {
    /// The importance of an entry, with the names of swift-log.
    public enum Level: String, Sendable, CaseIterable {
        /// The phases of an update.
        case trace
        /// Each change, and each call of a consumer.
        case debug
        /// The decision to install a release.
        case info
        /// A release was installed, or an attempt was put off.
        case notice
        /// A problem that the operator should know about.
        case warning
        /// An update failed.
        case error
        /// An update could be neither finished nor undone.
        case critical
    }

    /// An event.
    public struct Entry: Sendable, Equatable {
        /// The importance of the event.
        public let level: Level
        /// What happened, in a sentence.
        public let message: String
        /// Facts about the event, such as `generation`, `database` or `code`.
        public let metadata: [String: String]
    }

    private let body: @Sendable (Entry) -> Void

    /// Creates a log from a function.
    public init(_ body: @escaping @Sendable (Entry) -> Void) { self.body = body }

    func write(_ level: Level, _ message: String, _ metadata: [String: String] = [:]) {
        body(Entry(level: level, message: message, metadata: metadata))
    }

    func write(_ event: Event) {
        switch event {
        case .phase(let pass, let phase): write(.trace, "\(pass.rawValue): \(phase.rawValue)")
        case .progress: break
        case .done(let pass, let effect):
            write(
                .debug, pass == .undo ? "undone: \(effect.text)" : effect.text,
                effect.database.map { ["database": $0] } ?? [:])
        case .decided: write(.info, "the update is decided")
        case .recovered(let result): write(.notice, result.text, result.to.map { ["generation": $0.generation] } ?? [:])
        case .consumer(let name, let kind): write(.debug, "the consumer \(name) was called", ["call": kind.rawValue])
        case .warning(let text): write(.warning, "\(text.forApps)")
        }
    }
}

extension Store {
    /// Runs an update, and logs how it ended.
    func logging(_ action: String, _ body: () throws -> Update) throws -> Update {
        do {
            let update = try Advice.forApps(body)
            let metadata = update.generation.map { ["generation": $0] } ?? [:]
            log?.write(
                update.isInstalled ? .notice : .debug,
                update.isInstalled ? "the \(action) has installed a release" : "the \(action) had nothing to install",
                metadata)
            return update
        } catch {
            let known = error as? MoultError
            let isCalm = [.busy, .usage].contains(known?.outcome) || known?.code == .interrupted
            log?.write(
                known?.outcome == .stuck ? .critical : isCalm ? .notice : .error, "the \(action) failed: \(error)",
                known.map { ["code": $0.code.description] } ?? [:])
            throw error
        }
    }
}
