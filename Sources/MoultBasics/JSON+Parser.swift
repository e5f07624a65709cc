extension JSON {
    /// How strictly text is parsed.
    public enum Dialect: Sendable {
        /// JSON according to RFC 8259, for text that programs write and publishers sign.
        case plain
        /// JSON written by hand, which may contain comments and trailing commas.
        case draft
    }

    /// Parses JSON text. Errors name `source`, line and column.
    public init(parsing bytes: [UInt8], as dialect: Dialect = .plain, source: String) throws {
        self = try bytes.withUnsafeBufferPointer { buffer in
            var parser = JSONParser(bytes: buffer, dialect: dialect, source: source)
            return try parser.document()
        }
    }

    /// Parses JSON text.
    public init(parsing text: String, as dialect: Dialect = .plain, source: String) throws {
        try self.init(parsing: Array(text.utf8), as: dialect, source: source)
    }
}

/// A recursive parser over bytes. The depth is limited, so that hostile text cannot exhaust the stack.
private struct JSONParser {
    let bytes: UnsafeBufferPointer<UInt8>
    let dialect: JSON.Dialect
    let source: String
    var position = 0
    var depth = 0

    static let maxDepth = 64

    mutating func document() throws -> JSON {
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
        try skipSpace()
        let value = try value()
        try skipSpace()
        if position < bytes.count { throw error("unexpected text after the end of the JSON value") }
        return value
    }

    private mutating func value() throws -> JSON {
        guard let byte = peek else { throw error("expected a value, found the end of the text") }
        switch byte {
        case UInt8(ascii: "{"): return try nested { try $0.object() }
        case UInt8(ascii: "["): return try nested { try $0.array() }
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try word("true", .bool(true))
        case UInt8(ascii: "f"): return try word("false", .bool(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try number()
        default: throw error("expected a value, found \(shown(byte))")
        }
    }

    private mutating func nested(_ read: (inout Self) throws -> JSON) throws -> JSON {
        depth += 1
        if depth > Self.maxDepth { throw error("nested deeper than \(Self.maxDepth) levels") }
        defer { depth -= 1 }
        return try read(&self)
    }

    private mutating func object() throws -> JSON {
        var members: [JSON.Member] = []
        members.reserveCapacity(8)
        // Used only for objects with many members; for few, comparing names is faster than building a set.
        var names: Set<[UInt8]> = []
        /// Returns whether the object does not have this name yet. If it has many members, also adds the name to `names`.
        func claim(_ name: String) -> Bool {
            if members.count < 16 { return !members.contains { $0.name.hasBytes(of: name) } }
            if names.isEmpty { names = Set(members.map { Array($0.name.utf8) }) }
            return names.insert(Array(name.utf8)).inserted
        }
        try list(until: UInt8(ascii: "}")) { parser in
            guard parser.peek == UInt8(ascii: "\"") else {
                throw parser.error("expected a member name in double quotes")
            }
            let start = parser.position
            let name = try parser.string()
            // Parsers disagree about duplicate names, and signed text must have a single meaning.
            guard claim(name) else {
                parser.position = start
                throw parser.error("the member \"\(name)\" appears twice")
            }
            try parser.skipSpace()
            guard parser.take(UInt8(ascii: ":")) else { throw parser.error("expected ':' after \"\(name)\"") }
            try parser.skipSpace()
            members.append(JSON.Member(name, try parser.value()))
        }
        return .object(members)
    }

    private mutating func array() throws -> JSON {
        var values: [JSON] = []
        try list(until: UInt8(ascii: "]")) { values.append(try $0.value()) }
        return .array(values)
    }

    private mutating func list(until end: UInt8, _ item: (inout Self) throws -> Void) throws {
        position += 1
        try skipSpace()
        if take(end) { return }
        while true {
            try item(&self)
            try skipSpace()
            if take(end) { return }
            guard take(UInt8(ascii: ",")) else { throw error("expected ',' or \(shown(end))") }
            try skipSpace()
            if peek == end {
                guard dialect == .draft else { throw error("a comma before \(shown(end)) is not allowed in JSON") }
                position += 1
                return
            }
        }
    }

    private mutating func word(_ word: StaticString, _ value: JSON) throws -> JSON {
        for byte in UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount) {
            guard take(byte) else { throw error("expected true, false or null") }
        }
        return value
    }

    private mutating func number() throws -> JSON {
        let start = position
        _ = take(UInt8(ascii: "-"))
        let firstDigit = position
        digits()
        guard position > firstDigit else { throw error("expected a digit after the sign") }
        if bytes[firstDigit] == UInt8(ascii: "0"), position > firstDigit + 1 {
            throw error("a number must not begin with 0")
        }
        var whole = true
        if take(UInt8(ascii: ".")) {
            whole = false
            let fraction = position
            digits()
            guard position > fraction else { throw error("expected a digit after the decimal point") }
        }
        if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
            whole = false
            if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
            let exponent = position
            digits()
            guard position > exponent else { throw error("expected a digit in the exponent") }
        }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        if whole {
            guard let value = Int64(text) else { throw error("the number \(text) is too large") }
            return .integer(value)
        }
        guard let value = Double(text), value.isFinite else { throw error("the number \(text) is too large") }
        return .number(value)
    }

    private mutating func digits() {
        while let byte = peek, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { position += 1 }
    }

    private mutating func string() throws -> String {
        position += 1
        let start = position
        while let byte = peek, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\"), byte >= 0x20 { position += 1 }
        let text = try self.text(from: start)
        if take(UInt8(ascii: "\"")) { return text }
        return try string(after: text)
    }

    /// Reads the rest of a string that contains escapes, and returns the whole string.
    private mutating func string(after beginning: String) throws -> String {
        var text = beginning
        while true {
            guard let byte = peek else { throw error("the text ends inside a string") }
            switch byte {
            case UInt8(ascii: "\""):
                position += 1
                return text
            case UInt8(ascii: "\\"):
                position += 1
                text.unicodeScalars.append(try escape())
            case 0..<0x20:
                throw error("a control character is inside a string; escape it")
            default:
                let start = position
                while let byte = peek, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\"), byte >= 0x20 {
                    position += 1
                }
                text += try self.text(from: start)
            }
        }
    }

    /// Returns the text read since `start`.
    private mutating func text(from start: Int) throws -> String {
        guard let text = String(validating: bytes[start..<position], as: UTF8.self) else {
            position = start
            throw error("the text that begins here is not valid UTF-8")
        }
        return text
    }

    private mutating func escape() throws -> Unicode.Scalar {
        guard let byte = peek else { throw error("the text ends inside a string") }
        position += 1
        switch byte {
        case UInt8(ascii: "\""): return "\""
        case UInt8(ascii: "\\"): return "\\"
        case UInt8(ascii: "/"): return "/"
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{c}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"):
            let high = try fourHexDigits()
            if let scalar = Unicode.Scalar(high) { return scalar }
            guard take(UInt8(ascii: "\\")), take(UInt8(ascii: "u")) else { throw error("unpaired surrogate") }
            let low = try fourHexDigits()
            guard (0xD800..<0xDC00).contains(high), (0xDC00..<0xE000).contains(low),
                let scalar = Unicode.Scalar(0x10000 + (high - 0xD800) << 10 + (low - 0xDC00))
            else { throw error("unpaired surrogate") }
            return scalar
        default: throw error("unknown escape \\\(shown(byte))")
        }
    }

    private mutating func fourHexDigits() throws -> UInt32 {
        guard position + 4 <= bytes.count,
            let text = String(validating: bytes[position..<position + 4], as: UTF8.self),
            text.utf8.allSatisfy({ $0 != UInt8(ascii: "+") && $0 != UInt8(ascii: "-") }),
            let value = UInt32(text, radix: 16)
        else { throw error("expected four hexadecimal digits after \\u") }
        position += 4
        return value
    }

    private mutating func skipSpace() throws {
        while let byte = peek {
            switch byte {
            case 0x20, 0x09, 0x0A, 0x0D: position += 1
            case UInt8(ascii: "/"): try skipComment()
            default: return
            }
        }
    }

    private mutating func skipComment() throws {
        guard dialect == .draft else { throw error("a comment is not allowed in JSON") }
        let start = position
        position += 1
        if take(UInt8(ascii: "/")) {
            while let byte = peek, byte != 0x0A { position += 1 }
        } else if take(UInt8(ascii: "*")) {
            while true {
                guard let byte = peek else {
                    position = start
                    throw error("the comment that starts here has no end")
                }
                position += 1
                if byte == UInt8(ascii: "*"), take(UInt8(ascii: "/")) { return }
            }
        } else {
            throw error("a single '/' does not start a comment")
        }
    }

    private var peek: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard peek == byte else { return false }
        position += 1
        return true
    }

    private func shown(_ byte: UInt8) -> String {
        (0x21..<0x7F).contains(byte) ? "'\(Unicode.Scalar(byte))'" : "byte \(byte)"
    }

    private func error(_ why: String) -> MoultError {
        var line = 1
        var column = 1
        for byte in bytes[..<min(position, bytes.count)] {
            if byte == 0x0A { (line, column) = (line + 1, 1) } else { column += 1 }
        }
        return MoultError(.json, what: "\(source) is not valid JSON", why: "line \(line), column \(column): \(why)")
    }
}
