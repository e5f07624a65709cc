/// Follows SQL byte by byte and detects the end of a statement, by the rules of `sqlite3_complete()`.
///
/// A `;` ends a statement unless it is in quotes or a comment; a `CREATE TRIGGER` ends with `; END ;`.
struct StatementScanner {
    /// The context of the next byte.
    enum Inside: Equatable {
        case code
        case quotes(UInt8)
        case brackets
        case lineComment
        case blockComment
    }

    /// The part of a statement seen so far.
    private enum Progress {
        case start
        case explain
        case create
        case other
        case trigger
        case triggerSemicolon
        case triggerEnd
    }

    private enum Token { case semicolon, create, explain, temporary, trigger, end, other }

    private(set) var inside = Inside.code
    private var progress = Progress.start
    /// The first letters of the current word, in lower case. They are more than the longest keyword has, so a longer word is
    /// not mistaken for a keyword.
    private var word: [UInt8] = []
    /// A `-` or `/` that may form a token with the next byte, or, in a block comment, the previous byte.
    private var pending: UInt8 = 0
    /// Whether only white space and comments have followed the last statement.
    private var isBlank = true
    /// Whether a statement has begun and not ended.
    var hasBegun: Bool { !isBlank || !word.isEmpty }

    /// Whether every statement so far has ended, followed only by white space and comments.
    var isComplete: Bool { inside == .code && progress == .start && isBlank && word.isEmpty && pending == 0 }
    var semicolonWouldEndStatement: Bool {
        var copy = self
        copy.feed(UInt8(ascii: "\n"))
        return copy.feed(UInt8(ascii: ";"))
    }

    /// Processes one byte; returns whether it ends a statement.
    @discardableResult mutating func feed(_ byte: UInt8) -> Bool {
        switch inside {
        case .code: return code(byte)
        case .quotes(let quote): if byte == quote { inside = .code }
        case .brackets: if byte == UInt8(ascii: "]") { inside = .code }
        case .lineComment: if byte == UInt8(ascii: "\n") { inside = .code }
        case .blockComment:
            if pending == UInt8(ascii: "*"), byte == UInt8(ascii: "/") {
                inside = .code
                pending = 0
            } else {
                pending = byte
            }
        }
        return false
    }

    private mutating func code(_ byte: UInt8) -> Bool {
        if Self.isWord(byte) {
            finishPending()
            if word.count < 10 { word.append(byte | 0x20) }
            return false
        }
        endWord()
        switch (pending, byte) {
        case (UInt8(ascii: "-"), UInt8(ascii: "-")):
            (inside, pending) = (.lineComment, 0)
            return false
        case (UInt8(ascii: "/"), UInt8(ascii: "*")):
            (inside, pending) = (.blockComment, 0)
            return false
        default: finishPending()
        }
        switch byte {
        case UInt8(ascii: "-"), UInt8(ascii: "/"): pending = byte
        case UInt8(ascii: ";"): return take(.semicolon)
        case UInt8(ascii: " "), 9, 10, 12, 13: break
        case UInt8(ascii: "'"), UInt8(ascii: "\""), UInt8(ascii: "`"):
            take(.other)
            inside = .quotes(byte)
        case UInt8(ascii: "["):
            take(.other)
            inside = .brackets
        default: take(.other)
        }
        return false
    }

    private mutating func finishPending() {
        if pending != 0 { take(.other) }
        pending = 0
    }

    private mutating func endWord() {
        if word.isEmpty { return }
        let token: Token =
            switch String(decoding: word, as: UTF8.self) {
            case "create": .create
            case "explain": .explain
            case "temp", "temporary": .temporary
            case "trigger": .trigger
            case "end": .end
            default: .other
            }
        word.removeAll(keepingCapacity: true)
        take(token)
    }

    @discardableResult private mutating func take(_ token: Token) -> Bool {
        isBlank = false
        switch (progress, token) {
        case (.start, .semicolon), (.explain, .semicolon), (.create, .semicolon), (.other, .semicolon),
            (.triggerEnd, .semicolon):
            progress = .start
            isBlank = true
            return true
        case (.start, .explain): progress = .explain
        case (.start, .create), (.explain, .create): progress = .create
        // Words in between are allowed, as in EXPLAIN QUERY PLAN CREATE TEMP TRIGGER.
        case (.explain, .other), (.create, .temporary): break
        case (.create, .trigger): progress = .trigger
        case (.start, _), (.explain, _), (.create, _), (.other, _): progress = .other
        case (.trigger, .semicolon), (.triggerSemicolon, .semicolon): progress = .triggerSemicolon
        case (.triggerSemicolon, .end): progress = .triggerEnd
        case (.trigger, _), (.triggerSemicolon, _), (.triggerEnd, _): progress = .trigger
        }
        return false
    }

    private static func isWord(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "$"), 0x80...:
            true
        default: false
        }
    }
}

/// Characters that web pages and word processors substitute for plain ones.
enum TypographicQuotes {
    private static let all: [(character: String, code: String, plain: String)] = [
        ("“", "U+201C", "\""), ("”", "U+201D", "\""), ("„", "U+201E", "\""), ("‟", "U+201F", "\""),
        ("″", "U+2033", "\""), ("«", "U+00AB", "\""), ("»", "U+00BB", "\""), ("‘", "U+2018", "'"),
        ("’", "U+2019", "'"), ("‚", "U+201A", "'"), ("‛", "U+201B", "'"), ("′", "U+2032", "'"),
        ("–", "U+2013", "-"), ("—", "U+2014", "--"), ("\u{A0}", "U+00A0", "a space"),
    ]

    /// Returns a description of a typographic character at the index, such as `“ (U+201C) is used instead of "`; nil for any
    /// other character.
    static func name(at index: Int, in text: [UInt8]) -> String? {
        guard text[index] == 0xE2 || text[index] == 0xC2 else { return nil }
        return all.first { text[index...].starts(with: $0.character.utf8) }.map { found in
            let shown = found.character == "\u{A0}" ? "a no-break space" : found.character
            return "\(shown) (\(found.code)) is used instead of \(found.plain)"
        }
    }

    /// Returns the description of the first typographic character in a word of a dot command, if any.
    static func name(in word: [UInt8]) -> String? { word.indices.lazy.compactMap { name(at: $0, in: word) }.first }
}
