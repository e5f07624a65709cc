/// Text from outside this process: an argument, an environment variable, a path or name from the kernel, a line of a file. It is
/// bytes, and need not be valid UTF-8.
///
/// A repaired text would be a different path. So outside text becomes a path only here, if it is valid, and `scripts/check-bytes`
/// fails if other code decodes it.
package enum OutsideText {
    /// Returns the bytes as text; nil if they are not valid UTF-8.
    package static func valid(_ bytes: some Collection<UInt8>) -> String? { String(validating: bytes, as: UTF8.self) }

    /// Returns a C string as text; nil if it is not valid UTF-8.
    package static func valid(_ text: UnsafePointer<CChar>) -> String? { String(validatingCString: text) }

    /// Returns a C string as text. If it is not valid UTF-8, throws an error with its bytes: `what` is "the working directory".
    package static func path(_ text: UnsafePointer<CChar>, _ what: String, now: Advice? = nil) throws -> String {
        if let valid = valid(text) { return valid }
        throw error(
            UnsafeBufferPointer(start: text, count: length(of: text)).map(UInt8.init(bitPattern:)), what, now: now)
    }

    /// Returns the error for bytes that are not valid UTF-8.
    package static func error(_ bytes: some Collection<UInt8>, _ what: String, now: Advice? = nil) -> MoultError {
        MoultError(
            .system, .refused, what: "\(what) is not valid UTF-8: \(shown(bytes))",
            why: "moult would use a different path", now: now ?? "Rename that file or directory.")
    }

    /// Returns the bytes for a message: those that are not valid UTF-8 are written as `\xE9`.
    package static func shown(_ bytes: some Collection<UInt8>) -> String {
        var (text, decoder, rest) = ("", UTF8(), Array(bytes)[...])
        while let first = rest.first {
            var source = rest.makeIterator()
            switch decoder.decode(&source) {
            case .scalarValue(let scalar):
                text.unicodeScalars.append(scalar)
                rest = rest.dropFirst(UTF8.width(scalar))
            case .emptyInput, .error:
                text += "\\x" + twoHexDigits(first)
                rest = rest.dropFirst()
            }
            decoder = UTF8()
        }
        return visible(text)
    }

    private static func length(of text: UnsafePointer<CChar>) -> Int {
        var length = 0
        while text[length] != 0 { length += 1 }
        return length
    }
}
