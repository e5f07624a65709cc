extension StringProtocol {
    /// The text without leading and trailing white space.
    public var trimmed: String {
        var rest = Substring(self)
        while let first = rest.first, first.isWhitespace { rest.removeFirst() }
        while let last = rest.last, last.isWhitespace { rest.removeLast() }
        return String(rest)
    }
}

/// Returns whether the bytes contain the part. The standard library's search over arbitrary collections takes a thousand
/// instructions per byte, which would dominate the time of a command with nothing to do.
package func contains(_ part: StaticString, in bytes: [UInt8]) -> Bool {
    part.withUTF8Buffer { part in
        bytes.withUnsafeBufferPointer { bytes in
            guard let first = part.first, bytes.count >= part.count else { return part.isEmpty }
            return (0...bytes.count - part.count).contains { start in
                bytes[start] == first && part.indices.allSatisfy { bytes[start + $0] == part[$0] }
            }
        }
    }
}

/// Returns a number with its noun: "1 golden query", "3 golden queries".
public func counted(_ number: Int, _ one: String, _ many: String? = nil) -> String {
    "\(number) \(number == 1 ? one : many ?? one + "s")"
}

/// Returns a sentence about named things: "its database is a", "its databases are a, b".
package func itsNames(_ noun: String, _ names: [String]) -> String {
    "its \(noun)\(names.count == 1 ? " is" : "s are") \(names.joined(separator: ", "))"
}

/// Returns a command line that a shell parses as these words. Words with characters that a message cannot show are written in
/// the notation of bash and zsh, `$'a\nb'`.
package func shellLine(_ words: [String]) -> String {
    words.map { word in
        if word.unicodeScalars.contains(where: isInvisible) { return "$'\(word.utf8.map(ansiCQuoted).joined())'" }
        let isPlain = word.utf8.allSatisfy { byte in
            (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                || "-_./+:=@%,".utf8.contains(byte)
        }
        // In running text, a full stop or a comma at the end of a word would look like the end of the command.
        let endsPlainly = ![UInt8(ascii: "."), UInt8(ascii: ",")].contains(word.utf8.last)
        return isPlain && endsPlainly && !word.isEmpty ? word : "'\(word.replacing(scalar: "'", with: "'\\''"))'"
    }
    .joined(separator: " ")
}

private func ansiCQuoted(_ byte: UInt8) -> String {
    switch byte {
    case UInt8(ascii: "\n"): "\\n"
    case UInt8(ascii: "\t"): "\\t"
    case UInt8(ascii: "'"), UInt8(ascii: "\\"): "\\\(Character(Unicode.Scalar(byte)))"
    case 0x20..<0x7F: "\(Character(Unicode.Scalar(byte)))"
    default: "\\x" + twoHexDigits(byte)
    }
}

/// Returns a byte as two hexadecimal digits in upper case.
package func twoHexDigits(_ byte: UInt8) -> String {
    (byte < 0x10 ? "0" : "") + String(byte, radix: 16, uppercase: true)
}

/// Returns whether a character is invisible or could mislead a reader: control characters, direction marks, joiners, and
/// fillers that look like spaces.
func isInvisible(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    // C0 and C1 controls.
    case 0..<0x20, 0x7F..<0xA0: true
    // Soft hyphen, direction marks and overrides, zero-width characters, line separators, invisible operators.
    case 0xAD, 0x34F, 0x61C, 0x180E, 0x200B...0x200F, 0x2028...0x202E, 0x2060...0x206F, 0xFEFF, 0xFFF9...0xFFFB: true
    // Fillers and tags.
    case 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0, 0x1D173...0x1D17A, 0xE0000...0xE0FFF: true
    default: false
    }
}

/// Returns the text with every character escaped that could control a terminal or reorder the line. Names from archives,
/// manifests and file systems are untrusted.
package func visible(_ text: String) -> String {
    if text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) { return text }
    var result = ""
    for scalar in text.unicodeScalars {
        switch scalar.value {
        case 0x0A: result += "\\n"
        case 0x09: result += "\\t"
        case _ where isInvisible(scalar): result += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
        default: result.unicodeScalars.append(scalar)
        }
    }
    return result
}

/// Returns untrusted text for a quotation in a message, without its middle if it is longer than `limit` scalars. A character may have
/// a megabyte of combining marks.
package func shortened(_ text: String, to limit: Int = 200) -> String {
    if text.utf8.count <= limit || text.unicodeScalars.count <= limit { return text }
    let scalars = text.unicodeScalars
    return String(scalars.prefix(limit * 3 / 4)) + "…" + String(scalars.suffix(limit / 8))
}

/// Returns part of an error with long quotations shortened: a file may contain a name, number or value that is a megabyte long.
/// Paths stay complete, because users paste commands with them.
func readable(_ part: String) -> String {
    if part.utf8.count <= 200 { return part }
    let words = part.unicodeScalars.split(separator: " ", omittingEmptySubsequences: false).map {
        let word = String($0)
        return shortened(word, to: word.containsSlash ? 5_000 : 200)
    }
    return shortened(words.joined(separator: " "), to: 8_000)
}

/// A number of bytes for display: three digits and a binary unit, `83.8 MiB`.
public struct ByteCount: Sendable, Equatable, CustomStringConvertible {
    /// The number of bytes.
    public let bytes: Int
    /// Creates a byte count.
    public init(_ bytes: Int) { self.bytes = bytes }

    public var description: String {
        guard bytes >= 1024 else { return "\(bytes) B" }
        var value = Double(bytes)
        var unit = 0
        let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
        // From 999.5 on, a number would be shown with four digits.
        while value >= 999.5, unit < units.count - 1 {
            value /= 1024
            unit += 1
        }
        let decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0
        let scale = decimals == 2 ? 100.0 : decimals == 1 ? 10.0 : 1.0
        let rounded = Int((value * scale).rounded())
        guard decimals > 0 else { return "\(rounded) \(units[unit])" }
        let fraction = String(rounded % Int(scale))
        let zeros = String(repeating: "0", count: decimals - fraction.count)
        return "\(rounded / Int(scale)).\(zeros)\(fraction) \(units[unit])"
    }
}
