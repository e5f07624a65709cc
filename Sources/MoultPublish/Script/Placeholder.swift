/// `${name}` in a text, or `$${`, which stands for the characters `${`.
enum Placeholder {
    case name(String)
    case escaped

    /// The placeholder that begins at the index, and the index behind it; nil if none does.
    ///
    /// Braces around what is no name (letters, digits, `.`, `_`, `-`) are just text: `'${"a"}'` is a path in JSON.
    static func at(_ index: Int, in text: [UInt8]) -> (Placeholder, next: Int)? {
        guard text[index] == UInt8(ascii: "$") else { return nil }
        if text[index...].starts(with: "$${".utf8) { return (.escaped, index + 3) }
        guard text[index...].starts(with: "${".utf8) else { return nil }
        let name = text[(index + 2)...].prefix { isPartOfName($0) }
        guard !name.isEmpty, name.endIndex < text.count, text[name.endIndex] == UInt8(ascii: "}") else { return nil }
        return (.name(String(decoding: name, as: UTF8.self)), name.endIndex + 1)
    }

    static func isPartOfName(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
            true
        default: false
        }
    }
}
