internal import Synchronization

/// Measures the time of each part of an update, for the history.
package final class Stopwatch: Sendable {
    private let start = ContinuousClock.now
    private let state = Mutex(State())

    private struct State {
        var parts: [History.Part] = []
        var open: (pass: Event.Pass, name: String, start: ContinuousClock.Instant)?
    }

    package init() {}

    package func begin(_ pass: Event.Pass, _ name: String) {
        state.withLock { state in
            if let open = state.open, open.pass == pass, open.name == name { return }
            Self.close(&state)
            state.open = (pass, name, .now)
        }
    }

    package func pause() { state.withLock { Self.close(&$0) } }
    package var elapsed: Duration { ContinuousClock.now - start }

    /// The times of all parts, in the order in which they began. Reading them ends the current part.
    package var parts: [History.Part] {
        state.withLock { state in
            Self.close(&state)
            return state.parts
        }
    }

    /// Ends the current part. A step that runs again in the same pass adds to its own time.
    private static func close(_ state: inout State) {
        guard let open = state.open else { return }
        state.open = nil
        let took = ContinuousClock.now - open.start
        let same = state.parts.firstIndex { $0.pass == open.pass.rawValue && $0.name == open.name }
        if let same {
            state.parts[same].microseconds += took.microseconds
        } else {
            state.parts.append(History.Part(pass: open.pass.rawValue, name: open.name, microseconds: took.microseconds))
        }
    }
}

extension Duration {
    package var microseconds: Int {
        Int(components.seconds) * 1_000_000 + Int(components.attoseconds / 1_000_000_000_000)
    }
}
