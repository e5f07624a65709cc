import MoultBasics

/// Returns a name quoted for SQL, whatever characters it contains.
package func quoteIdentifier(_ name: String) -> String {
    "\"\(name.replacing(scalar: "\"", with: "\"\""))\""
}

/// Returns a literal that SQL parses back to the same value.
///
/// Text with a NUL becomes a cast of its bytes, because SQL text ends at a NUL. A NaN becomes NULL, as SQLite stores it.
package func quoteLiteral(_ value: Value) -> String {
    switch value {
    case .null: "NULL"
    // SQLite's parser reads the digits without the sign, and 2^63 does not fit into an integer.
    case .integer(.min): "(-9223372036854775807 - 1)"
    case .integer(let number): "\(number)"
    case .real(let number) where number.isNaN: "NULL"
    case .real(let number) where number.isInfinite: number > 0 ? "9e999" : "-9e999"
    case .real(let number): "\(number)"
    case .text(let text) where text.utf8.contains(0): "CAST(\(hexLiteral(text.utf8)) AS TEXT)"
    case .text(let text): "'\(text.replacing(scalar: "'", with: "''"))'"
    case .blob(let bytes): hexLiteral(bytes)
    }
}

private func hexLiteral(_ bytes: some Collection<UInt8>) -> String {
    let digits = Array("0123456789ABCDEF".utf8)
    var literal = "X'"
    literal.reserveCapacity(bytes.count * 2 + 3)
    for byte in bytes {
        literal.unicodeScalars.append(Unicode.Scalar(digits[Int(byte >> 4)]))
        literal.unicodeScalars.append(Unicode.Scalar(digits[Int(byte & 15)]))
    }
    return literal + "'"
}
