internal import MoultBasics
internal import MoultFiles

/// The rows of a file, batch by batch; a large file is read and split on a separate thread.
final class RowStream {
    private static let batchSize = 1 << 18
    /// The size from which a thread saves more time than it costs.
    private static let threadedFrom = 1 << 20

    let size: Int
    private let reader: RowReader
    private var own: RowBatch?
    private var exchange: BatchExchange?
    private var thread: Threads.Running?
    private var lent: RowBatch?

    init(path: String, format: RowFormat) throws {
        let file = try OpenFile(path)
        size = file.size
        reader = RowReader(format: format, source: file.read)
        if size >= Self.threadedFrom {
            let exchange = BatchExchange(batches: 3, size: Self.batchSize)
            let work = Work(reader: reader)
            thread = try Threads.start { exchange.produce { try work.reader.fill($0) } }
            self.exchange = exchange
        } else {
            own = RowBatch(capacity: Self.batchSize)
        }
    }

    deinit {
        exchange?.close()
        thread?.wait()
    }

    /// Returns the next batch, valid until the next call; nil at the end.
    func next() throws -> RowBatch? {
        if let own { return try reader.fill(own) ? own : nil }
        if let lent { exchange?.recycle(lent) }
        lent = try exchange?.take()
        return lent
    }

    private struct Work: @unchecked Sendable { let reader: RowReader }

    private final class OpenFile {
        let size: Int
        private let descriptor: Descriptor

        init(_ path: String) throws {
            descriptor = try Descriptor(path, .stream)
            size = try descriptor.facts().size
        }

        func read(_ buffer: UnsafeMutableRawBufferPointer) throws -> Int { try descriptor.read(into: buffer) }
    }
}
