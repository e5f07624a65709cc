/// Characters that web pages and word processors put where SQL wants plain ones.
enum TypographicQuotes {
    private static let all: [(character: String, code: String, plain: String)] = [
        ("“", "U+201C", "\""), ("”", "U+201D", "\""), ("„", "U+201E", "\""), ("‟", "U+201F", "\""),
        ("″", "U+2033", "\""), ("«", "U+00AB", "\""), ("»", "U+00BB", "\""), ("‘", "U+2018", "'"),
        ("’", "U+2019", "'"), ("‚", "U+201A", "'"), ("‛", "U+201B", "'"), ("′", "U+2032", "'"),
        ("–", "U+2013", "-"), ("—", "U+2014", "--"), ("\u{A0}", "U+00A0", "a space"),
    ]

    /// Names the character that begins at the index, if it is one of those: `“ (U+201C), which stands where " should`.
    static func name(at index: Int, in text: [UInt8]) -> String? {
        guard text[index] == 0xE2 || text[index] == 0xC2 else { return nil }
        return all.first { text[index...].starts(with: $0.character.utf8) }.map { found in
            let shown = found.character == "\u{A0}" ? "a no-break space" : found.character
            return "\(shown) (\(found.code)) stands where \(found.plain) should"
        }
    }

    /// Names the first of them in a word of a dot command.
    static func name(in word: [UInt8]) -> String? {
        word.indices.lazy.compactMap { name(at: $0, in: word) }.first
    }
}
