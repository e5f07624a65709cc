internal import MoultFiles
internal import MoultStore

extension AppConsumer: ConsumerChannel {
    var summary: String { "app" }

    func release(_ call: ConsumerCall) throws { try wait(call, releasing) }
    func reload(_ call: ConsumerCall) throws { try wait(call, reloading) }

    private func wait(
        _ call: ConsumerCall, _ body: @escaping @Sendable (ConsumerMessage) async throws -> Void
    ) throws {
        let message = call.message
        guard try Threads.wait(for: call.time, { try await body(message) }) else {
            throw ConsumerFault("the \(message.kind.rawValue) callback of this process did not return in time")
        }
    }
}
