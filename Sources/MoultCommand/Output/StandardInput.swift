internal import CLinux
internal import MoultBasics
internal import MoultLibc

enum StandardInput {
    static var isTerminal: Bool { isatty(STDIN_FILENO) == 1 }

    /// Asks the user at the terminal; throws unless the answer is yes. The question goes to stderr, to keep it out of the results.
    static func confirm(_ question: String, orElse what: String, now: Advice = "Nothing was changed.") throws {
        let text = "\(question) [y/N] "
        _ = write(STDERR_FILENO, text, text.utf8.count)
        let answer = String(decoding: try line(), as: UTF8.self)
        if ["y", "yes"].contains(answer.lowercased()) { return }
        throw MoultError(.interrupted, what: what, why: "the answer was not yes", now: now)
    }

    /// Returns the next line, without its line feed. A signal during the wait ends the command, even if signals are otherwise
    /// only recorded.
    static func line(orUntil isOver: () -> Bool = { false }) throws -> [UInt8] { try lineIfAny(orUntil: isOver) ?? [] }

    /// Like `line`, but returns nil at the end of the input.
    static func lineIfAny(orUntil isOver: () -> Bool = { false }) throws -> [UInt8]? {
        var bytes: [UInt8] = []
        var byte: UInt8 = 0
        while bytes.count < 1024 {
            var input = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
            // The read call reports errors of the descriptor.
            if poll(&input, 1, 100) <= 0 {
                try Interruption.check()
                if isOver() { break }
                continue
            }
            let count = read(STDIN_FILENO, &byte, 1)
            if count < 0, moult_errno() == EINTR { continue }
            guard count >= 0 else {
                throw MoultError(.system, what: "cannot read stdin", why: String(cString: strerror(moult_errno())))
            }
            if count == 0, bytes.isEmpty { return nil }
            if count == 0 || byte == UInt8(ascii: "\n") { break }
            bytes.append(byte)
        }
        return bytes
    }

    /// Returns all of the input as text, at most `limit` bytes.
    static func text(limit: Int) throws -> String {
        var bytes: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 65_536)
        while bytes.count <= limit {
            let count = read(STDIN_FILENO, &block, block.count)
            if count < 0, moult_errno() == EINTR { continue }
            guard count >= 0 else {
                throw MoultError(.system, what: "cannot read stdin", why: String(cString: strerror(moult_errno())))
            }
            guard count == 0 else {
                bytes += block[..<count]
                continue
            }
            guard let text = String(validating: bytes, as: UTF8.self) else {
                throw MoultError(.system, .usage, what: "cannot read stdin", why: "the input is not valid UTF-8")
            }
            return text
        }
        throw MoultError(
            .system, .usage, what: "cannot read stdin", why: "the input is larger than \(ByteCount(limit))")
    }
}
