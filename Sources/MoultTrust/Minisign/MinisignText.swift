internal import MoultBasics

/// The lines of a minisign file, and the errors for it.
struct MinisignText {
    /// The kind of file, for errors: "signature", "public key", "secret key".
    let kind: String
    let name: String
    let lines: [ArraySlice<UInt8>]

    /// Larger than any real file of this kind, so that an attacker cannot make this process parse a huge file.
    private static let limit = 1 << 20

    /// Splits a file into exactly `count` lines; the last one may lack its line break.
    init(_ bytes: [UInt8], kind: String, named name: String, lines count: Int) throws {
        (self.kind, self.name) = (kind, name)
        guard bytes.count <= Self.limit else { throw Self.error(kind, name, "it is larger than 1 MiB") }
        var lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        if lines.last?.isEmpty == true { lines.removeLast() }
        guard lines.count == count else {
            throw Self.error(kind, name, "it has \(lines.count) lines instead of \(count)")
        }
        self.lines = lines
        if lines.contains(where: { $0.last == UInt8(ascii: "\r") }) { throw error("it has Windows line endings") }
    }

    /// Returns the comment that follows the given prefix on a line.
    func comment(line: Int, prefix: String) throws -> String {
        guard lines[line].starts(with: prefix.utf8) else {
            throw error("line \(line + 1) does not begin with \"\(prefix)\"")
        }
        let comment = lines[line].dropFirst(prefix.utf8.count)
        guard let text = String(validating: comment, as: UTF8.self), Self.isPrintable(text) else {
            throw error("the comment on line \(line + 1) has characters that cannot be printed")
        }
        return text
    }

    /// Decodes the Base64 of a line; throws unless it has exactly `count` bytes.
    func bytes(line: Int, count: Int) throws -> [UInt8] {
        guard let bytes = Base64.decode(lines[line]) else { throw error("line \(line + 1) is not Base64") }
        guard bytes.count == count else {
            throw error("line \(line + 1) has \(bytes.count) bytes in Base64 instead of \(count)")
        }
        return bytes
    }

    func error(_ why: String) -> MoultError { Self.error(kind, name, why) }

    private static func error(_ kind: String, _ name: String, _ why: String) -> MoultError {
        MoultError(
            .minisignForm, .refused, what: "\(name) is not a minisign \(kind)", why: why,
            now: "Copy the file again from its source.")
    }

    static let untrusted = "untrusted comment: "
    static let trusted = "trusted comment: "

    /// Throws unless a comment is a single line of printable characters, and not too long.
    static func check(comment: String) throws {
        guard isPrintable(comment), comment.utf8.count <= 1_000 else {
            throw MoultError(
                .minisignComment, what: "the comment cannot be written into a signature",
                why: "a comment must be one line of at most 1,000 bytes, without control characters")
        }
    }

    /// Returns whether a text has no control characters other than tabs: they could move the cursor and change how a comment
    /// appears.
    private static func isPrintable(_ text: String) -> Bool {
        text.unicodeScalars.allSatisfy { $0 == "\t" || $0.properties.generalCategory != .control }
    }
}
