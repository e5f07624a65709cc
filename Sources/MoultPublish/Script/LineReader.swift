internal import MoultBasics
internal import MoultFiles
internal import MoultLibc

/// Reads a file line by line like the sqlite3 shell: `\n` and `\r\n` end a line and are not part of it.
final class LineReader {
    let path: String
    private(set) var line = 0
    private let descriptor: Descriptor
    private var buffer = [UInt8](repeating: 0, count: 1 << 16)
    private var start = 0
    private var end = 0

    init(path: String) throws {
        descriptor = try Descriptor(path, .stream)
        self.path = path
    }

    func next() throws -> [UInt8]? {
        var bytes: [UInt8] = []
        while true {
            if start == end {
                start = 0
                end = try buffer.withUnsafeMutableBytes { try descriptor.read(into: $0) }
                if end == 0 {
                    if bytes.isEmpty { return nil }
                    break
                }
            }
            let stop = buffer[start..<end].firstIndex(of: UInt8(ascii: "\n"))
            bytes += buffer[start..<(stop ?? end)]
            start = stop.map { $0 + 1 } ?? end
            if stop != nil { break }
        }
        line += 1
        // A byte order mark written by an editor is not a part of the first statement.
        if line == 1, bytes.starts(with: [0xEF, 0xBB, 0xBF]) { bytes.removeFirst(3) }
        if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
        return bytes
    }
}
