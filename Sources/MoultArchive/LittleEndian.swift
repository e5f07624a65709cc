internal import MoultBasics

/// A cursor over bytes with little-endian numbers; throws a refusal when reading past the end.
struct LittleEndian {
    private let bytes: ArraySlice<UInt8>
    private(set) var position: Int

    init(_ bytes: ArraySlice<UInt8>) { (self.bytes, position) = (bytes, bytes.startIndex) }

    var rest: ArraySlice<UInt8> { bytes[position...] }

    mutating func take(_ count: Int) throws -> ArraySlice<UInt8> {
        guard count >= 0, count <= rest.count else { throw ArchiveRefusal.damaged("a field is cut off") }
        defer { position += count }
        return bytes[position..<position + count]
    }

    mutating func byte() throws -> UInt8 { try take(1).first ?? 0 }

    /// Returns a number of 1 to 8 bytes; throws if it does not fit into an Int.
    mutating func number(_ width: Int) throws -> Int {
        let value = try take(width).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        guard let number = Int(exactly: value) else { throw ArchiveRefusal.damaged("a number in it is too large") }
        return number
    }
}

extension ArchiveRefusal {
    static func damaged(_ why: String) -> ArchiveRefusal {
        ArchiveRefusal(.archiveDamaged, "the zip directory is damaged: \(why)")
    }
}
