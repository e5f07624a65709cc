internal import MoultFiles
internal import MoultSQLite

/// The free pages of a database: SQLite lists them in trunk pages, and leaves the content of removed rows in them.
enum FreePages {
    /// Returns the size of the free pages that are not empty. The check of the database finds a damaged list; here it ends early.
    static func bytesWithContent(in path: String) throws -> Int {
        let file = try Descriptor(path, .read)
        let (size, pageSize) = (try file.facts().size, try DatabaseHeader(ofOwnFile: path).pageSize)
        let pages = size / pageSize
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: pageSize, alignment: 16)
        defer { buffer.deallocate() }
        func number(_ offset: Int) -> Int {
            Int(UInt32(bigEndian: buffer.loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
        }
        /// Reads a page; returns false if the file does not have it.
        func read(_ page: Int) throws -> Bool {
            guard (1...max(1, pages)).contains(page) else { return false }
            return try file.read(into: buffer, at: (page - 1) * pageSize) == pageSize
        }
        guard try read(1) else { return 0 }
        var (trunk, left, found) = (number(32), min(number(36), pages), 0)
        while left > 0, try read(trunk) {
            let count = min(number(4), pageSize / 4 - 2, left - 1)
            let leaves = (0..<count).map { number(8 + 4 * $0) }
            trunk = number(0)
            if buffer[(8 + 4 * count)...].contains(where: { $0 != 0 }) { found += 1 }
            for leaf in leaves where try read(leaf) && buffer.contains(where: { $0 != 0 }) { found += 1 }
            left -= 1 + count
        }
        return found * pageSize
    }
}
