extension JSON {
    /// This value as text on one line, for journals and event streams.
    public var line: String {
        var text = ""
        write(to: &text, indent: nil)
        return text
    }

    /// This value as text for humans: indented by two spaces, one member per line, ending with a newline.
    public var pretty: String {
        var text = ""
        write(to: &text, indent: 0)
        text += "\n"
        return text
    }

    private func write(to text: inout String, indent: Int?) {
        switch self {
        case .null: text += "null"
        case .bool(let value): text += value ? "true" : "false"
        case .integer(let value): text += String(value)
        // JSON has no infinity, but many parsers read an excessively large number as infinity. SQLite's shell also writes
        // infinity this way.
        case .number(let value) where value.isInfinite: text += value < 0 ? "-9e999" : "9e999"
        case .number(let value): text += value.isNaN ? "null" : "\(value)"
        case .string(let value): Self.quote(value, to: &text)
        case .array(let values):
            Self.list(values, in: ("[", "]"), to: &text, indent: indent) { value, text, indent in
                value.write(to: &text, indent: indent)
            }
        case .object(let members):
            Self.list(members, in: ("{", "}"), to: &text, indent: indent) { member, text, indent in
                Self.quote(member.name, to: &text)
                text += indent == nil ? ":" : ": "
                member.value.write(to: &text, indent: indent)
            }
        }
    }

    private static func list<Item>(
        _ items: [Item], in brackets: (String, String), to text: inout String, indent: Int?,
        item write: (Item, inout String, Int?) -> Void
    ) {
        text += brackets.0
        let inner = indent.map { $0 + 1 }
        for (index, item) in items.enumerated() {
            if index > 0 { text += "," }
            if let inner { text += "\n" + String(repeating: "  ", count: inner) }
            write(item, &text, inner)
        }
        if let indent, !items.isEmpty { text += "\n" + String(repeating: "  ", count: indent) }
        text += brackets.1
    }

    private static func quote(_ value: String, to text: inout String) {
        text += "\""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case "\r": text += "\\r"
            case "\t": text += "\\t"
            case _ where isInvisible(scalar):
                // The values are untrusted, and the output may go to a terminal.
                for unit in String(scalar).utf16 {
                    let hex = String(unit, radix: 16)
                    text += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
                }
            default: text.unicodeScalars.append(scalar)
            }
        }
        text += "\""
    }
}
