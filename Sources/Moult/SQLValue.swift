package import MoultSQLite

/// A value in SQL, as SQLite stores it.
///
///     try connection.execute("INSERT INTO note (text, rank, icon) VALUES (?, ?, ?)", ["rye bread", 1, .blob(icon)])
public enum SQLValue: Sendable, Hashable {
    /// SQL's `NULL`; `nil` as a literal.
    case null
    /// An integer.
    case integer(Int64)
    /// A floating-point number.
    case real(Double)
    /// Text.
    case text(String)
    /// Bytes.
    case blob([UInt8])

    /// The text; nil for other types.
    public var text: String? { if case .text(let text) = self { text } else { nil } }
    /// The integer; nil for other types.
    public var integer: Int64? { if case .integer(let number) = self { number } else { nil } }
    /// The number, converted if it is an integer; nil for other types.
    public var real: Double? {
        switch self {
        case .real(let number): number
        case .integer(let number): Double(number)
        case .null, .text, .blob: nil
        }
    }
    /// The bytes; nil for other types.
    public var blob: [UInt8]? { if case .blob(let bytes) = self { bytes } else { nil } }
}

extension SQLValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByNilLiteral
{
    public init(stringLiteral text: String) { self = .text(text) }
    public init(integerLiteral number: Int64) { self = .integer(number) }
    public init(floatLiteral number: Double) { self = .real(number) }
    public init(nilLiteral: ()) { self = .null }
}

extension SQLValue: CustomStringConvertible {
    /// The value as text: numbers and text unchanged, null as `NULL`, and bytes as `x'00ff'`.
    public var description: String {
        switch self {
        case .null: "NULL"
        case .integer(let number): "\(number)"
        case .real(let number): "\(number)"
        case .text(let text): text
        case .blob: "\(stored)"
        }
    }
}

extension SQLValue {
    package init(_ value: Value) {
        switch value {
        case .null: self = .null
        case .integer(let number): self = .integer(number)
        case .real(let number): self = .real(number)
        case .text(let text): self = .text(text)
        case .blob(let bytes): self = .blob(bytes)
        }
    }

    package var stored: Value {
        switch self {
        case .null: .null
        case .integer(let number): .integer(number)
        case .real(let number): .real(number)
        case .text(let text): .text(text)
        case .blob(let bytes): .blob(bytes)
        }
    }
}
