/// Makes tar headers byte by byte, including headers that no program writes.
enum TarBytes {
    /// Returns a header block with a correct checksum.
    static func header(
        _ name: String, size: Int = 0, type: Character = "0", link: String = "", magic: String = "ustar\u{0}00"
    ) -> [UInt8] {
        var block = [UInt8](repeating: 0, count: 512)
        func put(_ text: String, at offset: Int) {
            for (index, byte) in text.utf8.enumerated() { block[offset + index] = byte }
        }
        func octal(_ number: Int, width: Int) -> String {
            let digits = String(number, radix: 8)
            return String(repeating: "0", count: width - digits.count) + digits
        }
        put(name, at: 0)
        put("0000644", at: 100)
        put("0000000", at: 108)
        put("0000000", at: 116)
        put(octal(size, width: 11), at: 124)
        put("00000000000", at: 136)
        put("        ", at: 148)
        put(String(type), at: 156)
        put(link, at: 157)
        put(magic, at: 257)
        put(octal(block.reduce(0) { $0 + Int($1) }, width: 6) + "\u{0} ", at: 148)
        return block
    }

    /// Returns a header with the content of the file, padded to whole blocks.
    static func file(_ name: String, _ content: [UInt8]) -> [UInt8] {
        header(name, size: content.count) + content + padding(content.count)
    }

    static func padding(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: (512 - count % 512) % 512) }

    /// Returns a pax header with one record for the next entry.
    static func pax(_ key: String, _ value: String) -> [UInt8] {
        // The length includes its own digits; here, the length has two or three digits.
        let rest = " \(key)=\(value)\n"
        let length = rest.utf8.count + (rest.utf8.count + 2 < 100 ? 2 : 3)
        let record = Array("\(length)\(rest)".utf8)
        return header("pax", size: record.count, type: "x") + record + padding(record.count)
    }

    static let end = [UInt8](repeating: 0, count: 1024)
}
