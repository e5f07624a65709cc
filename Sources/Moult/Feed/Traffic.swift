internal import MoultTransport
internal import Synchronization

/// What a command learns from its feed, for the record of its attempt.
package final class Traffic: Sendable {
    private struct State {
        var transport: Transport?
        var rollout: Rollout?
    }
    private let state = Mutex(State())

    func begin(_ transport: Transport) { state.withLock { $0.transport = transport } }
    func note(_ rollout: Rollout?) { state.withLock { $0.rollout = rollout } }

    var bytes: Int { state.withLock { $0.transport?.received ?? 0 } }
    var rollout: Rollout? { state.withLock { $0.rollout } }
}
