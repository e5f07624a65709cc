/// A number of bytes as people read it: three digits and a binary unit, `83.8 MiB`.
public struct ByteCount: Sendable, Equatable, CustomStringConvertible {
    /// The number itself.
    public let bytes: Int
    /// So many bytes.
    public init(_ bytes: Int) { self.bytes = bytes }

    public var description: String {
        guard bytes >= 1024 else { return "\(bytes) B" }
        var value = Double(bytes)
        var unit = 0
        let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
        // 1023.5 would be shown as "1024".
        while value >= 999.5, unit < units.count - 1 {
            value /= 1024
            unit += 1
        }
        let decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0
        let scale = decimals == 2 ? 100.0 : decimals == 1 ? 10.0 : 1.0
        let rounded = Int((value * scale).rounded())
        guard decimals > 0 else { return "\(rounded) \(units[unit])" }
        let fraction = String(rounded % Int(scale))
        let zeros = String(repeating: "0", count: decimals - fraction.count)
        return "\(rounded / Int(scale)).\(zeros)\(fraction) \(units[unit])"
    }
}
