/// Rows of a file in memory: the bytes, and the position of each field.
///
/// A batch is passed from the reading thread to the inserting thread and back, hence `@unchecked Sendable`.
final class RowBatch: @unchecked Sendable {  // Only the thread that holds a batch accesses it.
    struct Field {
        var start: UInt32
        var end: UInt32
        /// The position of a field that is missing because the file ended before it.
        static let missing = Field(start: .max, end: .max)
        var isMissing: Bool { start == .max }
    }

    struct Row {
        let firstField: Int
        let fieldCount: Int
        /// The line where the row starts.
        let line: Int
    }

    struct Notice: Equatable {
        enum Kind: Equatable { case unescapedQuote, unterminatedQuote, nul, notUTF8 }
        let kind: Kind
        let line: Int
        let row: Int
        /// The number of the field, starting at 1.
        let column: Int
    }

    private(set) var bytes: UnsafeMutableBufferPointer<UInt8>
    private(set) var fieldRoom: UnsafeMutableBufferPointer<Field>
    private(set) var rowRoom: UnsafeMutableBufferPointer<Row>
    var rowCount = 0
    var notices: [Notice] = []

    /// The maximum number of fields, more than any SQLite table has columns. Further fields are counted, but not read.
    static let widestRow = 1 << 16

    init(capacity: Int) {
        bytes = .allocate(capacity: capacity)
        fieldRoom = .allocate(capacity: 4 * Self.widestRow)
        rowRoom = .allocate(capacity: Self.widestRow)
    }

    deinit {
        bytes.deallocate()
        fieldRoom.deallocate()
        rowRoom.deallocate()
    }

    func clear() {
        rowCount = 0
        notices.removeAll(keepingCapacity: true)
    }

    /// Makes space for more bytes. Keeps the first `count` bytes, and removes all rows.
    func grow(to capacity: Int, keeping count: Int) {
        let larger = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: capacity)
        _ = larger.update(fromContentsOf: bytes[..<count])
        bytes.deallocate()
        bytes = larger
        clear()
    }

    var rows: Slice<UnsafeMutableBufferPointer<Row>> { rowRoom[..<rowCount] }

    func fields(of row: Row) -> Slice<UnsafeMutableBufferPointer<Field>> {
        fieldRoom[row.firstField..<row.firstField + min(row.fieldCount, Self.widestRow)]
    }

    /// Returns the bytes of a field that is not missing.
    func text(_ field: Field) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(bytes)[Int(field.start)..<Int(field.end)])
    }
}
