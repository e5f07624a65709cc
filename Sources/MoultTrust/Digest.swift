/// A SHA-256 digest: 32 bytes, compared by value and written as lower-case hexadecimal.
package struct Digest: Hashable, Sendable {
    /// The size of a digest in bytes.
    package static let size = 32

    // Four big-endian words: equality and hashing are synthesized, and nothing is allocated.
    private let words: SIMD4<UInt64>

    /// Creates a digest from its 32 bytes; nil for any other number of bytes.
    package init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count == Self.size else { return nil }
        var words = SIMD4<UInt64>()
        for index in 0..<4 {
            words[index] = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: index * 8, as: UInt64.self))
        }
        self.words = words
    }

    /// Parses 64 hexadecimal digits, upper or lower case; nil for anything else.
    package init?(hex: some StringProtocol) {
        let digits = hex.utf8
        guard digits.count == 2 * Self.size else { return nil }
        var words = SIMD4<UInt64>()
        for (index, digit) in digits.enumerated() {
            guard let value = Self.value(ofDigit: digit) else { return nil }
            words[index / 16] = words[index / 16] << 4 | value
        }
        self.words = words
    }

    private static func value(ofDigit digit: UInt8) -> UInt64? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt64(digit - UInt8(ascii: "0"))
        case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt64(digit - UInt8(ascii: "a") + 10)
        case UInt8(ascii: "A")...UInt8(ascii: "F"): UInt64(digit - UInt8(ascii: "A") + 10)
        default: nil
        }
    }

    /// The 32 bytes.
    package var bytes: [UInt8] {
        (0..<Self.size).map { (index: Int) -> UInt8 in
            let shift = 56 - index % 8 * 8
            return UInt8(truncatingIfNeeded: words[index / 8] >> shift)
        }
    }

    /// 64 lower-case hexadecimal digits.
    package var hex: String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }

    /// The first 8 hexadecimal digits: enough to distinguish the releases of a product in names.
    package var prefix8: String { String(hex.prefix(8)) }
}

extension Digest: CustomStringConvertible {
    package var description: String { hex }
}
