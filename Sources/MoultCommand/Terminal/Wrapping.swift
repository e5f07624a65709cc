internal import MoultBasics

extension StyledText {
    /// Returns the text in lines of at most `width` columns, broken at spaces. A longer word gets a separate line, unbroken, so
    /// that a path or digest can still be copied; so does a command that is advised.
    func wrapped(to width: Int) -> [StyledText] {
        var lines: [StyledText] = []
        var line = StyledText()
        var lineWidth = 0
        for word in words {
            let wordWidth = word.width
            if lineWidth > 0, lineWidth + 1 + wordWidth > width {
                lines.append(line)
                (line, lineWidth) = (word, wordWidth)
            } else if lineWidth > 0 {
                // The space between two words of the same style has that style too.
                let style = line.parts.last?.style == word.parts.first?.style ? word.parts.first?.style : nil
                line += StyledText(" ", style) + word
                lineWidth += 1 + wordWidth
            } else {
                (line, lineWidth) = (word, wordWidth)
            }
        }
        return lines + [line]
    }

    /// The width of the longest part that `wrapped` does not break.
    var longestWord: Int { words.map(\.width).max() ?? 0 }

    private var words: [StyledText] {
        var words: [StyledText] = []
        var word = StyledText()
        for part in parts {
            var piece = String.UnicodeScalarView()
            for scalar in part.text.unicodeScalars {
                if scalar == " ", !part.isCommand {
                    word += StyledText(String(piece), part.style)
                    piece = .init()
                    if !word.parts.isEmpty { words.append(word) }
                    word = StyledText()
                } else {
                    piece.append(scalar)
                }
            }
            var rest = part
            rest.text = String(piece)
            if !rest.text.isEmpty { word += StyledText(parts: [rest]) }
        }
        return word.parts.isEmpty ? words : words + [word]
    }
}

/// Returns the number of columns that the text takes on a terminal once `visible` has escaped it.
func displayWidth(_ text: String) -> Int {
    if text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) { return text.utf8.count }
    return visible(text).reduce(0) { $0 + displayWidth($1) }
}

/// Returns the number of columns that a character takes: 0, 1 or 2.
func displayWidth(_ character: Character) -> Int {
    guard let first = character.unicodeScalars.first else { return 0 }
    if first.value < 0x300 { return 1 }
    if isWide(first) || character.unicodeScalars.contains("\u{FE0F}") { return 2 }
    switch first.properties.generalCategory {
    case .nonspacingMark, .enclosingMark, .format: return 0
    default: return 1
    }
}

/// Returns whether a character is in an East Asian wide or fullwidth block (UAX 11), or is an emoji.
private func isWide(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF,
        0xFE30...0xFE6F, 0xFF01...0xFF60, 0xFFE0...0xFFE6, 0x1B000...0x1B2FF, 0x20000...0x3FFFD:
        true
    default: scalar.properties.isEmojiPresentation
    }
}
