extension StyledText {
    /// The text in lines of at most `width` columns, broken at spaces; a word that is longer stands alone, unbroken, so
    /// that a path or digest can still be copied.
    package func wrapped(to width: Int) -> [StyledText] {
        var lines: [StyledText] = []
        var line = StyledText()
        var lineWidth = 0
        for word in words {
            let wordWidth = word.width
            if lineWidth > 0, lineWidth + 1 + wordWidth > width {
                lines.append(line)
                (line, lineWidth) = (word, wordWidth)
            } else if lineWidth > 0 {
                // The space between two words of one style belongs to it.
                let style = line.parts.last?.style == word.parts.first?.style ? word.parts.first?.style : nil
                line += StyledText(" ", style) + word
                lineWidth += 1 + wordWidth
            } else {
                (line, lineWidth) = (word, wordWidth)
            }
        }
        return lines + [line]
    }

    /// The words between spaces; one word may have several styles.
    private var words: [StyledText] {
        var words: [StyledText] = []
        var word = StyledText()
        for part in parts {
            let pieces = part.text.split(separator: " ", omittingEmptySubsequences: false)
            for (index, piece) in pieces.enumerated() {
                if index > 0, !word.parts.isEmpty {
                    words.append(word)
                    word = StyledText()
                }
                word += StyledText(String(piece), part.style)
            }
        }
        return word.parts.isEmpty ? words : words + [word]
    }
}
