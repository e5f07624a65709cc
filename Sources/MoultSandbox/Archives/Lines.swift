/// Splits blocks of bytes into lines.
struct Lines {
    private var rest: [UInt8] = []
    private var start = 0
    /// No line ends before this position.
    private var searched = 0

    mutating func add(_ block: [UInt8]) {
        rest.removeFirst(start)
        (start, searched) = (0, searched - start)
        rest += block
    }

    /// How many bytes wait for the end of their line, or for `next`.
    var waiting: Int { rest.count - start }

    /// The next whole line, without its end.
    mutating func next() -> [UInt8]? {
        guard let end = rest[searched...].firstIndex(of: UInt8(ascii: "\n")) else {
            searched = rest.count
            return nil
        }
        defer { (start, searched) = (end + 1, end + 1) }
        return Array(rest[start..<end])
    }
}
