internal import MoultBasics

/// A line that starts with a dot, split into words as in the sqlite3 shell.
struct DotCommand {
    /// The name as it is written, without the dot.
    let name: String
    /// The arguments. They are bytes, because a separator may be any byte.
    let arguments: [[UInt8]]
    let place: Place

    /// Splits the line at white space. Words may be quoted; a backslash is an escape in double quotes and outside
    /// quotes. A word may contain `${name}`, whose value never splits the word.
    init(_ line: [UInt8], at place: Place, substitute: (String, Place) throws -> String) throws {
        var words: [[UInt8]] = []
        var rest = line.dropFirst()
        while true {
            rest = rest.drop(while: isSpace)
            guard let first = rest.first else { break }
            let word: ArraySlice<UInt8>
            if first == UInt8(ascii: "'") || first == UInt8(ascii: "\"") {
                rest.removeFirst()
                let end = Self.end(of: rest, quote: first)
                word = rest[..<end]
                // Skips the closing quote. Without one, the word extends to the end of the line.
                rest = rest[end...].dropFirst()
            } else {
                word = rest.prefix { !isSpace($0) }
                rest = rest[word.endIndex...].dropFirst()
            }
            let bytes = first == UInt8(ascii: "'") ? Array(word) : Self.resolvingBackslashes(word)
            words.append(try Placeholder.replaced(in: bytes) { name, _ in try substitute(name, place) })
        }
        name = words.first.map { String(decoding: $0, as: UTF8.self) } ?? ""
        arguments = Array(words.dropFirst())
        self.place = place
    }

    private static func end(of text: ArraySlice<UInt8>, quote: UInt8) -> Int {
        var index = text.startIndex
        while index < text.endIndex, text[index] != quote {
            if quote == UInt8(ascii: "\""), text[index] == UInt8(ascii: "\\"), index + 1 < text.endIndex { index += 1 }
            index += 1
        }
        return index
    }

    /// Resolves `\t`, `\n`, `\r`, `\a`, `\b`, `\v`, `\f` and up to three octal digits; removes the backslash before other
    /// characters.
    private static func resolvingBackslashes(_ text: ArraySlice<UInt8>) -> [UInt8] {
        let letters: [UInt8: UInt8] = [
            UInt8(ascii: "a"): 7, UInt8(ascii: "b"): 8, UInt8(ascii: "t"): 9, UInt8(ascii: "n"): 10,
            UInt8(ascii: "v"): 11, UInt8(ascii: "f"): 12, UInt8(ascii: "r"): 13,
        ]
        let octal = UInt8(ascii: "0")...UInt8(ascii: "7")
        var resolved: [UInt8] = []
        var rest = text
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "\\"), let next = rest.popFirst() else {
                resolved.append(byte)
                continue
            }
            guard octal ~= next else {
                resolved.append(letters[next] ?? next)
                continue
            }
            var code = next - UInt8(ascii: "0")
            var digits = 1
            while digits < 3, let digit = rest.first, octal ~= digit {
                code = code &* 8 &+ (digit - UInt8(ascii: "0"))
                digits += 1
                rest.removeFirst()
            }
            resolved.append(code)
        }
        // The shell's words are C strings, which end at a NUL.
        return Array(resolved.prefix { $0 != 0 })
    }

    /// The arguments as text; refuses typographic quotes.
    var texts: [String] {
        get throws {
            for argument in arguments {
                guard let name = TypographicQuotes.name(in: argument) else { continue }
                throw MoultError(
                    .script, what: "\(place): \(name)",
                    why:
                        "web pages and word processors insert such characters, and .\(self.name) would use them literally",
                    now: "Replace the typographic characters in the script with plain ASCII ones.")
            }
            return try arguments.map { bytes in
                guard let text = String(validating: bytes, as: UTF8.self) else {
                    throw MoultError(
                        .script, what: "\(place): an argument of .\(name) is not UTF-8",
                        now: "Save the script as UTF-8.")
                }
                return text
            }
        }
    }

    /// The arguments of a command that takes files and tables, where a `;` at the end is a mistake.
    var names: [String] {
        get throws {
            let texts = try texts
            guard texts.last?.last == ";" else { return texts }
            throw MoultError(
                .script, what: "\(place): .\(name) ends with \";\"",
                why: "a dot command ends with its line, and the \";\" would be part of its last word",
                now: "Remove the semicolon.")
        }
    }
}

func isSpace(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || (9...13).contains(byte) }
