/// A token of SQL in normalized spelling.
package struct SQLToken: Equatable {
    package enum Kind {
        case word
        /// A name in double quotes, backquotes or brackets; double quotes may also contain text.
        case quoted
        case string
        case number
        case symbol
    }

    package var kind: Kind
    /// A word is in lower case, a name is without its quotes, and a string includes them.
    package var text: String

    package func isWord(_ word: String) -> Bool { kind == .word && text == word }
    package func isSymbol(_ symbol: String) -> Bool { kind == .symbol && text == symbol }
}

/// Splits SQL into tokens as SQLite's own tokenizer does, without white space and comments.
package func sqlTokens(_ sql: String) -> [SQLToken] {
    var scanner = Scanner(bytes: Array(sql.utf8))
    var tokens: [SQLToken] = []
    while let token = scanner.next() { tokens.append(token) }
    return tokens
}

private struct Scanner {
    let bytes: [UInt8]
    var position = 0

    init(bytes: [UInt8]) { self.bytes = bytes }

    private func byte(_ offset: Int = 0) -> UInt8 { position + offset < bytes.count ? bytes[position + offset] : 0 }

    mutating func next() -> SQLToken? {
        skipSpaceAndComments()
        guard position < bytes.count else { return nil }
        let start = position
        switch byte() {
        case UInt8(ascii: "'"): return SQLToken(kind: .string, text: raw(quoted(by: UInt8(ascii: "'"))))
        case UInt8(ascii: "\""), UInt8(ascii: "`"): return name(quotedBy: byte())
        case UInt8(ascii: "["): return name(quotedBy: UInt8(ascii: "]"))
        case UInt8(ascii: "x"), UInt8(ascii: "X"):
            guard byte(1) == UInt8(ascii: "'") else { return word() }
            position += 1
            _ = quoted(by: UInt8(ascii: "'"))
            return SQLToken(kind: .string, text: raw(start..<position).uppercased())
        case UInt8(ascii: "0")...UInt8(ascii: "9"): return number()
        case UInt8(ascii: ".") where Self.isDigit(byte(1)): return number()
        case let first where Self.isWordByte(first): return word()
        default: return symbol()
        }
    }

    private mutating func skipSpaceAndComments() {
        while position < bytes.count {
            switch (byte(), byte(1)) {
            case (9...13, _), (32, _): position += 1
            case (UInt8(ascii: "-"), UInt8(ascii: "-")):
                while position < bytes.count, byte() != 10 { position += 1 }
            case (UInt8(ascii: "/"), UInt8(ascii: "*")):
                position += 2
                while position < bytes.count, (byte(), byte(1)) != (UInt8(ascii: "*"), UInt8(ascii: "/")) {
                    position += 1
                }
                position = min(position + 2, bytes.count)
            default: return
            }
        }
    }

    /// Moves past the closing quote, and returns the range of the text with its quotes. A doubled quote is part of the text.
    private mutating func quoted(by close: UInt8) -> Range<Int> {
        let start = position
        position += 1
        while position < bytes.count {
            if byte() != close {
                position += 1
            } else if byte(1) == close, close != UInt8(ascii: "]") {
                position += 2
            } else {
                position += 1
                break
            }
        }
        return start..<position
    }

    private mutating func name(quotedBy close: UInt8) -> SQLToken {
        let range = quoted(by: close)
        let inner = raw(range.dropFirst().dropLast())
        let quote = String(Unicode.Scalar(close))
        return SQLToken(
            kind: .quoted, text: close == UInt8(ascii: "]") ? inner : inner.replacing(quote + quote, with: quote))
    }

    private mutating func word() -> SQLToken {
        let start = position
        while position < bytes.count, Self.isWordByte(byte()) { position += 1 }
        return SQLToken(kind: .word, text: asciiLowercased(raw(start..<position)))
    }

    private mutating func number() -> SQLToken {
        let start = position
        let isHexadecimal = byte(1) | 32 == UInt8(ascii: "x")
        while Self.isWordByte(byte()) || byte() == UInt8(ascii: ".") {
            let isExponent = !isHexadecimal && byte() | 32 == UInt8(ascii: "e")
            position += 1
            if isExponent, byte() == UInt8(ascii: "+") || byte() == UInt8(ascii: "-") { position += 1 }
        }
        return SQLToken(kind: .number, text: asciiLowercased(raw(start..<position)))
    }

    private mutating func symbol() -> SQLToken {
        let rest = bytes[position...]
        let long = Self.longSymbols.first { rest.starts(with: $0.utf8) }
        let length = long?.utf8.count ?? 1
        defer { position += length }
        return SQLToken(kind: .symbol, text: raw(position..<position + length))
    }

    private func raw(_ range: Range<Int>) -> String { String(decoding: bytes[range], as: UTF8.self) }

    private static let longSymbols = ["->>", "->", "||", "<=", ">=", "<>", "!=", "==", "<<", ">>"]

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    /// Returns whether SQLite allows a byte in names: letters, digits, `_`, `$` and everything outside ASCII.
    private static func isWordByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "$"), 128...255:
            true
        default: false
        }
    }
}

/// Folds the case of a name as SQLite does: ASCII letters only.
func asciiLowercased(_ text: String) -> String {
    String(
        decoding: text.utf8.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 32 : $0 }, as: UTF8.self)
}

extension ArraySlice<SQLToken> {
    /// Returns the index of the parenthesis that closes the one at `open`; `endIndex` if it is missing.
    func closingParenthesis(of open: Int) -> Int {
        var depth = 0
        for index in open..<endIndex {
            if self[index].isSymbol("(") { depth += 1 }
            if self[index].isSymbol(")") { depth -= 1 }
            if depth == 0 { return index }
        }
        return endIndex
    }

    /// Returns the parts separated by commas outside parentheses.
    func splitAtCommas() -> [ArraySlice<SQLToken>] {
        var parts: [ArraySlice<SQLToken>] = []
        var start = startIndex
        var index = startIndex
        while index < endIndex {
            if self[index].isSymbol("(") {
                index = Swift.min(closingParenthesis(of: index), endIndex - 1)
            } else if self[index].isSymbol(",") {
                parts.append(self[start..<index])
                start = index + 1
            }
            index += 1
        }
        parts.append(self[start..<endIndex])
        return parts
    }
}
