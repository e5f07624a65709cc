/// One value as SQLite stores it.
package enum Value: Equatable, Sendable {
    case null
    case integer(Int64)
    case real(Double)
    case text(String)
    case blob([UInt8])
}

extension Value: CustomStringConvertible {
    /// The value as a literal of SQL.
    package var description: String { quoteLiteral(self) }
}
