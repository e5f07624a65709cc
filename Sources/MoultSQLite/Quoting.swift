import MoultBasics

package func quoteIdentifier(_ name: String) -> String { "\"\(name.replacing(scalar: "\"", with: "\"\""))\"" }

/// Returns a literal that SQL parses back to the same value. Text with a NUL becomes a cast of its bytes, because SQL text ends
/// at a NUL. A NaN becomes NULL, as SQLite stores it.
package func quoteLiteral(_ value: Value) -> String {
    switch value {
    case .null: "NULL"
    // SQLite's parser reads the digits without the sign, and 2^63 does not fit into an integer.
    case .integer(.min): "(-9223372036854775807 - 1)"
    case .integer(let number): "\(number)"
    case .real(let number) where number.isNaN: "NULL"
    case .real(let number) where number.isInfinite: number > 0 ? "9e999" : "-9e999"
    case .real(let number): "\(number)"
    case .text(let text) where text.utf8.contains(0): "CAST(X'\(hexDigits(of: text.utf8, isUpper: true))' AS TEXT)"
    case .text(let text): "'\(text.replacing(scalar: "'", with: "''"))'"
    case .blob(let bytes): "X'\(hexDigits(of: bytes, isUpper: true))'"
    }
}

package func hexDigits(of bytes: some Sequence<UInt8>, isUpper: Bool = false) -> String {
    let digits = Array((isUpper ? "0123456789ABCDEF" : "0123456789abcdef").utf8)
    var text: [UInt8] = []
    text.reserveCapacity(2 * bytes.underestimatedCount)
    for byte in bytes {
        text.append(digits[Int(byte >> 4)])
        text.append(digits[Int(byte & 15)])
    }
    return String(decoding: text, as: UTF8.self)
}

/// Returns a name of the rowid that no column has; nil if columns have all three.
package func freeRowIDName(among columns: some Sequence<String>) -> String? {
    let taken = Set(columns.map { SQLName($0) })
    return ["rowid", "_rowid_", "oid"].first { !taken.contains(SQLName($0)) }
}
