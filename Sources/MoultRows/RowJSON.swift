package import MoultBasics
package import MoultSQLite

/// A row as JSON from which every value can be restored exactly. Integers and finite reals are numbers (a real always has a
/// fraction or an exponent), valid text without NUL is a string, and NULL is null. Any other value is an object with one member:
/// `{"real":"Infinity"}`, `{"text":"<hex of UTF-8>"}`, `{"text16":"<hex of UTF-16LE>"}` (invalid text of a UTF-16 database) or
/// `{"blob":"<hex>"}`.
enum RowJSON {
    /// Returns the current row of the statement as JSON; `first` is the column of the first name.
    static func text(_ row: borrowing Statement, from first: Int32, _ names: [String], isUTF16: Bool) throws -> String {
        var members: [JSON.Member] = []
        for (offset, name) in names.enumerated() {
            members.append(.init(name, try value(row, first + Int32(offset), isUTF16: isUTF16)))
        }
        return JSON.object(members).line
    }

    private static func value(_ row: borrowing Statement, _ column: Int32, isUTF16: Bool) throws -> JSON {
        switch row.storage(column) {
        case .null: return .null
        case .integer: return .integer(row.int64(column))
        case .real:
            let number = row.double(column)
            if number.isFinite { return .number(number) }
            return tagged("real", number > 0 ? "Infinity" : "-Infinity")
        case .text: return try text(row, column, isUTF16: isUTF16)
        case .blob: return tagged("blob", try row.withBlob(column) { hexDigits(of: $0) })
        }
    }

    private static func text(_ row: borrowing Statement, _ column: Int32, isUTF16: Bool) throws -> JSON {
        if isUTF16 {
            let units = try row.text16(column)
            guard String(validating: units, as: UTF16.self) != nil else {
                return tagged(
                    "text16", hexDigits(of: units.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8($0 >> 8)] }))
            }
        }
        return try row.withText(column) { bytes in
            guard !bytes.contains(0), let text = String(validating: bytes, as: UTF8.self) else {
                return tagged("text", hexDigits(of: bytes))
            }
            return .string(text)
        }
    }

    fileprivate static func tagged(_ kind: String, _ text: String) -> JSON { .object([.init(kind, .string(text))]) }

}

extension Value {
    /// The value as in the JSON of a row.
    package var json: JSON {
        switch self {
        case .null: .null
        case .integer(let number): .integer(number)
        case .real(let number) where number.isFinite: .number(number)
        case .real(let number): RowJSON.tagged("real", number > 0 ? "Infinity" : "-Infinity")
        case .text(let text) where text.utf8.contains(0): RowJSON.tagged("text", hexDigits(of: text.utf8))
        case .text(let text): .string(text)
        case .blob(let bytes): RowJSON.tagged("blob", hexDigits(of: bytes))
        }
    }

    /// Reads a value from the JSON of a row; nil if it is none. Text that is not valid UTF-8 is none.
    package init?(json: JSON) {
        switch json {
        case .null: self = .null
        case .integer(let number): self = .integer(number)
        case .number(let number): self = .real(number)
        case .string(let text): self = .text(text)
        case .object(let members):
            guard members.count == 1, let text = members[0].value.string else { return nil }
            switch members[0].name {
            case "real": self = .real(text == "Infinity" ? .infinity : -.infinity)
            case "blob":
                guard let bytes = RowJSON.bytes(text) else { return nil }
                self = .blob(bytes)
            case "text":
                guard let text = RowJSON.bytes(text).flatMap({ String(validating: $0, as: UTF8.self) }) else {
                    return nil
                }
                self = .text(text)
            default: return nil
            }
        case .bool, .array: return nil
        }
    }
}

extension RowJSON {
    fileprivate static func bytes(_ hex: String) -> [UInt8]? {
        let digits = Array(hex.utf8)
        guard digits.count.isMultiple(of: 2) else { return nil }
        var bytes: [UInt8] = []
        for place in stride(from: 0, to: digits.count, by: 2) {
            guard let byte = UInt8(String(decoding: digits[place..<place + 2], as: UTF8.self), radix: 16) else {
                return nil
            }
            bytes.append(byte)
        }
        return bytes
    }
}
