internal import MoultFiles

/// Passes filled batches from the reading thread to the inserting thread, and empty ones back.
final class BatchExchange: @unchecked Sendable {  // All properties are accessed only within the monitor.
    private let monitor = Monitor()
    private var empty: [RowBatch]
    private var full: [RowBatch] = []
    private var end: Result<Void, any Error>?
    private var isClosed = false

    init(batches: Int, size: Int) { empty = (0..<batches).map { _ in RowBatch(capacity: size) } }

    /// Fills batches until no rows are left, or the consumer stops.
    func produce(_ fill: (RowBatch) throws -> Bool) {
        let result = Result { while let batch = nextEmpty(), try fill(batch) { monitor.locked { full.append(batch) } } }
        monitor.locked { end = result }
    }

    private func nextEmpty() -> RowBatch? {
        monitor.locked {
            monitor.wait { empty.isEmpty && !isClosed }
            return isClosed ? nil : empty.popLast()
        }
    }

    /// Returns the next filled batch; nil after the last one.
    func take() throws -> RowBatch? {
        let next: Result<RowBatch?, any Error>? = monitor.locked {
            monitor.wait { full.isEmpty && end == nil }
            return full.isEmpty ? end.map { $0.map { nil } } : .success(full.removeFirst())
        }
        return try next?.get()
    }

    func recycle(_ batch: RowBatch) { monitor.locked { empty.append(batch) } }

    func close() { monitor.locked { isClosed = true } }
}
