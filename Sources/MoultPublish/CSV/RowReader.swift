internal import MoultBasics

/// Reads a file in batches of complete rows, split by `RowSplitter`.
final class RowReader {
    private let splitter: RowSplitter
    /// Fills the buffer with the file's next bytes, and returns their number; 0 at the end.
    private let source: (UnsafeMutableRawBufferPointer) throws -> Int
    /// The start of a row that ends in the next batch.
    private var rest: [UInt8] = []
    private var line = 1
    private var atEnd = false
    private var atStart = true

    /// The maximum length of a row: SQLite does not accept longer text, whatever its limits are set to.
    private static let longestRow = 1 << 30
    private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

    init(format: RowFormat, source: @escaping (UnsafeMutableRawBufferPointer) throws -> Int) {
        splitter = RowSplitter(format)
        self.source = source
    }

    func fill(_ batch: RowBatch) throws -> Bool {
        batch.clear()
        while batch.bytes.count < rest.count * 2 { batch.grow(to: batch.bytes.count * 2, keeping: 0) }
        _ = batch.bytes.update(fromContentsOf: rest)
        var count = rest.count
        rest.removeAll(keepingCapacity: true)
        while true {
            count = try read(into: batch, after: count)
            let begin =
                atStart && splitter.format.style == .csv && batch.bytes[..<count].starts(with: Self.byteOrderMark)
            let parsed = splitter.split(batch, begin ? 3 : 0, count, isEnd: atEnd, line: &line)
            if batch.rowCount > 0 || atEnd {
                atStart = false
                rest.append(contentsOf: batch.bytes[parsed..<count])
                return batch.rowCount > 0
            }
            // The batch does not have enough space even for one row.
            guard count < Self.longestRow else {
                throw MoultError(
                    .importing, what: "line \(line): the row that begins here is longer than \(ByteCount(count))",
                    now: "Check whether a closing quote is missing.")
            }
            batch.grow(to: batch.bytes.count * 2, keeping: count)
        }
    }

    /// Fills the batch up to its capacity or the end of the file; returns the number of bytes in it.
    private func read(into batch: RowBatch, after count: Int) throws -> Int {
        var count = count
        while count < batch.bytes.count, !atEnd {
            let room = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(batch.bytes)[count...])
            let more = try source(room)
            if more == 0 { atEnd = true }
            count += more
        }
        return count
    }
}
