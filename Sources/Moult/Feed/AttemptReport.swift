internal import MoultBasics
internal import MoultFiles
internal import MoultLibc
internal import MoultTransport
internal import Synchronization

/// The report of an attempt to the operator's server. It is sent once, and a failure changes nothing about the attempt.
enum AttemptReport {
    /// Seconds for the request, so that a server that does not answer delays a command only for this time.
    private static let limit = 10

    static func send(_ attempt: Attempt, in layout: StoreLayout, _ settings: Settings, _ watcher: Watcher) {
        guard let url = settings.report else { return }
        do {
            var policy = Transport.RetryPolicy()
            policy.patience = limit
            let places = try FeedFollower.configuredPlaces(settings, layout) + [Location(url)]
            // Files that cannot be used may be the failure that is reported.
            let proof = try? settings.feed?.client.proof(for: places)
            let transport = Transport(policy, proof: proof, stopIfAsked: { try watcher.stopIfAsked() })
            try transport.post(record(attempt, settings, layout).line, to: url, seconds: limit)
        } catch { watcher.tell(.warning("the report of this attempt was not sent: \(error.problem)")) }
    }

    private static func record(_ attempt: Attempt, _ settings: Settings, _ layout: StoreLayout) -> JSON {
        var name = [CChar](repeating: 0, count: 256)
        // Without a name, the report still has the path of the store.
        let host =
            gethostname(&name, name.count - 1) == 0
            ? OutsideText.valid(name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:))) : nil
        return .record([
            "format": 1, "host": host, "store": layout.root, "product": settings.product, "attempt": attempt.json,
        ])
    }
}

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
