internal import MoultFiles

/// A consumer that is part of this very process.
package final class AppConsumer: ConsumerChannel, Equatable {
    private let releasing: @Sendable (ConsumerMessage) async throws -> Void
    private let reloading: @Sendable (ConsumerMessage) async throws -> Void

    package init(
        release: @escaping @Sendable (ConsumerMessage) async throws -> Void,
        reload: @escaping @Sendable (ConsumerMessage) async throws -> Void
    ) {
        (releasing, reloading) = (release, reload)
    }

    package static func == (a: AppConsumer, b: AppConsumer) -> Bool { a === b }

    var summary: String { "app" }

    func release(_ call: ConsumerCall) throws { try wait(call, releasing) }
    func reload(_ call: ConsumerCall) throws { try wait(call, reloading) }

    private func wait(
        _ call: ConsumerCall, _ body: @escaping @Sendable (ConsumerMessage) async throws -> Void
    ) throws {
        let message = call.message
        guard try Threads.wait(for: call.time, { try await body(message) }) else {
            throw ConsumerFault("this process did not \(message.kind.rawValue) it in time")
        }
    }
}
