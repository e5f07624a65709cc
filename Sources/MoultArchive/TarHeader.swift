internal import MoultBasics

/// The header of a plain file in a tar archive: ustar, with only a name, a size and a time.
package enum TarHeader {
    static let blockSize = 512
    /// Two empty blocks mark the end of a tar archive.
    static let end = [UInt8](repeating: 0, count: 2 * blockSize)

    private static let nameSize = 100

    package static func block(name: String, size: Int, modified: Int) throws -> [UInt8] {
        guard name.utf8.count <= nameSize else {
            throw ArchiveRefusal(
                .archivePacking, "the name \"\(name)\" is longer than \(nameSize) bytes", now: .shorten)
        }
        var block = [UInt8](repeating: 0, count: blockSize)
        func put(_ bytes: some Sequence<UInt8>, at offset: Int) {
            for (index, byte) in bytes.enumerated() { block[offset + index] = byte }
        }
        put(name.utf8, at: 0)
        put(number(0o644, width: 8), at: 100)
        // Owner and group are 0 without names: a bundle does not reveal who packed it.
        put(number(0, width: 8), at: 108)
        put(number(0, width: 8), at: 116)
        put(number(size, width: 12), at: 124)
        put(number(modified, width: 12), at: 136)
        put([UInt8](repeating: UInt8(ascii: " "), count: 8), at: 148)
        put(CollectionOfOne(UInt8(ascii: "0")), at: 156)
        put("ustar\u{0}00".utf8, at: 257)
        // The checksum treats its own field as spaces.
        put(number(block.reduce(0) { $0 + Int($1) }, width: 7), at: 148)
        return block
    }

    /// Returns a number as octal digits and a NUL. From 8 GiB on, a size is big-endian bytes with the top bit set, which every
    /// current tar reads.
    private static func number(_ number: Int, width: Int) -> [UInt8] {
        let digits = Array(String(number, radix: 8).utf8)
        if number >= 0, digits.count < width {
            return [UInt8](repeating: UInt8(ascii: "0"), count: width - 1 - digits.count) + digits + [0]
        }
        let bytes = (0..<width).map { UInt8(truncatingIfNeeded: $0 < 8 ? number >> ($0 * 8) : number >> 63) }
        return [bytes[width - 1] | 0x80] + bytes[..<(width - 1)].reversed()
    }

    static func padding(_ size: Int) -> [UInt8] {
        [UInt8](repeating: 0, count: (blockSize - size % blockSize) % blockSize)
    }

    /// Parses a header; nil unless moult would write exactly the same bytes.
    static func fields(of block: UnsafeRawBufferPointer) -> BundleReader.Member? {
        guard let name = String(validating: block[..<nameSize].prefix { $0 != 0 }, as: UTF8.self),
            let size = number(block[124..<136]), let modified = number(block[136..<148]), size >= 0,
            // `block` throws only if the name is too long, and a field of this length cannot contain such a name.
            let again = try? Self.block(name: name, size: size, modified: modified), block.elementsEqual(again)
        else { return nil }
        return (name, size)
    }

    private static func number(_ field: Slice<UnsafeRawBufferPointer>) -> Int? {
        guard let first = field.first else { return nil }
        guard first & 0x80 != 0 else { return Int(String(decoding: field.dropLast(), as: UTF8.self), radix: 8) }
        return Int(truncatingIfNeeded: field.suffix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    }
}
