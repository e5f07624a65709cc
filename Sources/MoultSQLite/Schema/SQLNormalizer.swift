import MoultBasics

/// Normalizes SQL: white space, comments, quotes, and the case of keywords and of mentioned names make no difference.
struct SQLNormalizer {
    /// All names declared in the schema.
    let names: Set<SQLName>

    func normalize(_ sql: String) -> String { normalize(sqlTokens(sql)[...]) }

    func normalize(_ tokens: ArraySlice<SQLToken>) -> String {
        tokens.indices.map { spelling(of: $0, in: tokens) }.joined(separator: " ")
    }

    private func spelling(of index: Int, in tokens: ArraySlice<SQLToken>) -> String {
        let token = tokens[index]
        guard token.kind == .quoted else { return token.text }
        let folded = asciiLowercased(token.text)
        // SQLite treats an unknown name in double quotes as text, and then its case matters.
        let isName =
            names.contains(SQLName(token.text))
            || index > tokens.startIndex && (tokens[index - 1].isWord("as") || tokens[index - 1].isSymbol("."))
            || index + 1 < tokens.endIndex && tokens[index + 1].isSymbol(".")
        guard isName else { return quoteLiteral(.text(token.text)) }
        return isPlain(folded) ? folded : quoteIdentifier(folded)
    }

    private func isPlain(_ name: String) -> Bool {
        guard let first = name.utf8.first, !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first) else {
            return false
        }
        let tokens = sqlTokens(name)
        return tokens.count == 1 && tokens[0].kind == .word && tokens[0].text == name
    }
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
