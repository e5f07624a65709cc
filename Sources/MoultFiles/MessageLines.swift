package import MoultBasics
internal import MoultLibc

extension JSON {
    /// This value as a message to another process: a line of JSON, the format that moult's processes and steps share.
    package var message: [UInt8] { Array("\(line)\n".utf8) }
}

/// Splits bytes received from another process into messages, one per line.
package struct MessageLines {
    private var bytes: [UInt8] = []
    private var start = 0
    /// The unread bytes before this position contain no line end.
    private var searched = 0
    private let longest: Int

    /// A line is longer than the limit, so its sender is faulty or hostile.
    package struct TooLong: Error {}

    package init(longest: Int) { self.longest = longest }

    package mutating func add(_ block: some Collection<UInt8>) {
        bytes.removeFirst(start)
        (start, searched) = (0, searched - start)
        bytes += block
    }

    /// Returns the next complete line, without its line feed; nil if more bytes are needed.
    package mutating func next() throws(TooLong) -> [UInt8]? {
        let end = lineEnd()
        searched = end ?? bytes.count
        if searched - start > longest { throw TooLong() }
        guard let end else { return nil }
        defer { (start, searched) = (end + 1, end + 1) }
        return Array(bytes[start..<end])
    }

    /// Returns the position of the next line end. The C library searches, because a hostile sender can send as much as the limit
    /// allows.
    private func lineEnd() -> Int? {
        bytes.withUnsafeBytes { all in
            guard let begin = all.baseAddress, let found = memchr(begin + searched, 0x0A, all.count - searched) else {
                return nil
            }
            return UnsafeRawPointer(found) - begin
        }
    }

    /// Removes and returns all remaining bytes: an unfinished last line.
    package mutating func rest() -> [UInt8] { take(bytes.count) }

    /// Removes and returns at most this number of bytes, which follow a message.
    package mutating func take(_ count: Int) -> [UInt8] {
        let end = min(bytes.count, start + count)
        defer { (start, searched) = (end, end) }
        return Array(bytes[start..<end])
    }
}

extension Subprocess {
    package func send(_ message: JSON) { send(message.message) }
}

/// The child's side of a `Subprocess`, for a process that serves its parent: it reads requests from standard input, and writes
/// replies to standard output.
package struct ParentChannel {
    private var lines: MessageLines
    private var isAtEnd = false

    package init(longest: Int) { lines = MessageLines(longest: longest) }

    /// Returns the next request; nil at the end of the input. The last line may lack its line feed, because older versions of
    /// the parent do not send one.
    package mutating func next() throws -> JSON? {
        while true {
            let line: [UInt8]?
            do { line = try lines.next() } catch {
                throw MoultError(.system, what: "a request from the parent process is too long")
            }
            if let line { return try JSON(parsing: line, source: "the request") }
            if isAtEnd {
                let last = lines.rest()
                return last.isEmpty ? nil : try JSON(parsing: last, source: "the request")
            }
            let block = try [UInt8](unsafeUninitializedCapacity: 1 << 16) { buffer, count in
                let bytes = UnsafeMutableRawBufferPointer(buffer)
                do throws(Errno) { count = try Syscall.read(0, bytes) } catch {
                    throw error.error("cannot read a request")
                }
            }
            isAtEnd = block.isEmpty
            lines.add(block)
        }
    }

    /// Sends a message, and bytes that belong to it.
    package static func send(_ message: JSON, then bytes: UnsafeRawBufferPointer? = nil) throws {
        try (message.message + (bytes.map { Array($0) } ?? [])).withUnsafeBytes { try send($0) }
    }

    package static func send(_ bytes: UnsafeRawBufferPointer) throws(Errno) { try Syscall.writeAll(1, bytes) }
}
