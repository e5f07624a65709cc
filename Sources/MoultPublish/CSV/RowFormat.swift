internal import MoultBasics

/// The format of the rows in a file to import.
struct RowFormat: Equatable, Sendable {
    /// Whether a `"` at the start of a field quotes it.
    enum Style: Sendable {
        /// Fields may be quoted; a `\r` before the row separator is dropped, and a byte order mark is skipped.
        case csv
        /// Every byte is literal.
        case ascii
    }

    let style: Style
    let column: UInt8
    let row: UInt8

    static let csv = RowFormat(style: .csv, column: UInt8(ascii: ","), row: UInt8(ascii: "\n"))
    /// The format with the ASCII control characters for this purpose: unit separator and record separator.
    static let ascii = RowFormat(style: .ascii, column: 0x1F, row: 0x1E)
}

extension RowFormat {
    /// Creates the format for the separators that a script has set. Each must be a single byte.
    init(style: Style, column: [UInt8], row: [UInt8]) throws(Unreadable) {
        if column.count == 1, column == row { throw Unreadable("the column separator is also the row separator") }
        self.style = style
        self.column = try Self.single(column, "column", style)
        self.row = try Self.single(row, "row", style)
    }

    /// Why files cannot be read with these separators.
    struct Unreadable: Error {
        let why: String
        init(_ why: String) { self.why = why }
    }

    private static func single(_ separator: [UInt8], _ name: String, _ style: Style) throws(Unreadable) -> UInt8 {
        let shown = shown(separator)
        guard let byte = separator.first else { throw Unreadable("the \(name) separator is empty") }
        if separator.count > 1 {
            throw Unreadable(
                "the \(name) separator \(shown) has \(separator.count) bytes, and only one byte is supported")
        }
        if style == .csv, byte == UInt8(ascii: "\"") { throw Unreadable("the \(name) separator is the quotation mark") }
        if byte >= 0x80 { throw Unreadable("the \(name) separator \(shown) is not an ASCII character") }
        return byte
    }

    static func shown(_ separator: [UInt8]) -> String {
        var text = ""
        for scalar in String(decoding: separator, as: UTF8.self).unicodeScalars {
            switch scalar {
            case "\t": text += "\\t"
            case "\n": text += "\\n"
            case "\r": text += "\\r"
            case "\"", "\\": text += "\\\(scalar)"
            case _ where scalar.value < 0x20 || scalar.value == 0x7F:
                let octal = String(scalar.value, radix: 8)
                text += "\\" + String(repeating: "0", count: 3 - octal.count) + octal
            default: text.unicodeScalars.append(scalar)
            }
        }
        return "\"\(text)\""
    }
}
