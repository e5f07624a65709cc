internal import MoultFiles
internal import MoultSQLite

/// The changed pages of a database file: those that a patch would contain if it replaced whole pages.
package struct PageMap: Sendable, Equatable {
    package let pageSize: Int
    package let oldCount: Int
    package let newCount: Int
    package private(set) var changed = 0
    /// A bit for each page of the new file, lowest first: set if the page changed or is new.
    private var bits: [UInt64]

    /// Compares two files page by page; nil if their page sizes differ. A WAL next to a file is ignored.
    init?(old: String, new: String) throws {
        let (oldHeader, newHeader) = (try Self.header(old), try Self.header(new))
        guard oldHeader.pageSize == newHeader.pageSize else { return nil }
        let pageSize = newHeader.pageSize
        var (oldPages, newPages, differing) = (0, 0, 0)
        var bits: [UInt64] = []
        let perBlock = (1 << 20) / pageSize
        try BlockPairs(old: old, new: new, blockSize: perBlock * pageSize).forEach { one, two in
            for index in 0..<perBlock {
                func page(_ block: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
                    UnsafeRawBufferPointer(rebasing: block.dropFirst(index * pageSize).prefix(pageSize))
                }
                let (was, now) = (page(one), page(two))
                if !was.isEmpty { oldPages += 1 }
                if now.isEmpty { continue }
                if newPages % 64 == 0 { bits.append(0) }
                if !isSame(was, now) {
                    bits[newPages / 64] |= 1 << UInt64(newPages % 64)
                    if !was.isEmpty { differing += 1 }
                }
                newPages += 1
            }
            return true
        }
        (self.pageSize, oldCount, newCount, changed, self.bits) = (pageSize, oldPages, newPages, differing, bits)
    }

    private static func header(_ path: String) throws -> DatabaseHeader {
        let file = try Descriptor(path, .read)
        var bytes = [UInt8](repeating: 0, count: DatabaseHeader.byteCount)
        let count = try bytes.withUnsafeMutableBytes { try file.read(into: $0, at: 0) }
        return try bytes[..<count].withUnsafeBytes { try DatabaseHeader($0, path: path) }
    }

    /// The number of pages at the end that only the new file has.
    package var added: Int { max(0, newCount - oldCount) }
    /// The number of pages at the end that only the old file has.
    package var removed: Int { max(0, oldCount - newCount) }

    struct Cell: Equatable {
        var share: Double
        var isNew: Bool
    }

    /// Returns the new file, divided into at most `limit` cells in page order.
    func cells(atMost limit: Int) -> [Cell] {
        let count = min(limit, newCount)
        return (0..<count).map { cell in
            let pages = (cell * newCount / count)..<((cell + 1) * newCount / count)
            let hits = pages.count { bits[$0 / 64] >> UInt64($0 % 64) & 1 == 1 }
            return Cell(share: Double(hits) / Double(pages.count), isNew: pages.lowerBound >= oldCount)
        }
    }
}
