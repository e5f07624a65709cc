internal import MoultFiles

/// Reads the raw pages of a database file one at a time, and the page numbers in them.
///
/// Nothing is trusted: anything unusual or unknown throws `NeedsFullCheck`.
final class RawPages {
    struct NeedsFullCheck: Error {}

    let count: Int
    let size: Int
    /// The size of a page without the space that extensions reserve at its end.
    let usable: Int
    private let file: Descriptor
    private let page: UnsafeMutableRawBufferPointer

    /// Opens the file. Deinitialization closes it, which drops every lock that this process has on the file.
    init(_ path: String) throws {
        let file = try Descriptor(path, .read)
        let header = try DatabaseHeader(of: file)
        (count, size) = (Int(header.pageCount), header.pageSize)
        page = .allocate(byteCount: size, alignment: 8)
        try RawPages.fill(page, 1, of: file)
        usable = size - Int(page[20])
        self.file = file
        // Auto-vacuum databases also have pages with a map of all pages, which this class does not read.
        guard header.hasPageCount, usable >= 480, number(52) == 0, number(64) == 0 else { throw NeedsFullCheck() }
    }

    deinit { page.deallocate() }

    func read(_ number: Int) throws {
        guard number > 0, number <= count else { throw NeedsFullCheck() }
        try Self.fill(page, number, of: file)
    }

    private static func fill(_ page: UnsafeMutableRawBufferPointer, _ number: Int, of file: borrowing Descriptor) throws
    {
        guard try file.read(into: page, at: (number - 1) * page.count) == page.count else { throw NeedsFullCheck() }
    }

    /// Returns the first number on another page, without reading the whole page.
    func firstNumber(of other: Int) throws -> Int {
        var bytes: UInt32 = 0
        let count = try withUnsafeMutableBytes(of: &bytes) { try file.read(into: $0, at: (other - 1) * size) }
        guard count == 4 else { throw NeedsFullCheck() }
        return Int(UInt32(bigEndian: bytes))
    }

    /// Returns the number at an offset in the page read last.
    func number(_ place: Int) -> Int {
        Int(UInt32(bigEndian: page.loadUnaligned(fromByteOffset: place, as: UInt32.self)))
    }

    private func short(_ place: Int) -> Int {
        Int(UInt16(bigEndian: page.loadUnaligned(fromByteOffset: place, as: UInt16.self)))
    }

    // MARK: - Nodes of trees

    struct Node {
        let isInterior: Bool
        let isTable: Bool
        let cells: Int
        /// The offset of the array of cell pointers.
        let places: Int
    }

    func node(_ number: Int) throws -> Node {
        try read(number)
        let start = number == 1 ? 100 : 0
        let kind = page[start]
        guard [2, 5, 10, 13].contains(kind) else { throw NeedsFullCheck() }
        let node = Node(
            isInterior: kind < 8, isTable: kind == 5 || kind == 13, cells: short(start + 3),
            places: start + (kind < 8 ? 12 : 8))
        guard node.places + 2 * node.cells <= usable else { throw NeedsFullCheck() }
        return node
    }

    /// Returns the offset of a cell of the node read last.
    func cell(_ index: Int, of node: Node) throws -> Int {
        let place = short(node.places + 2 * index)
        guard place >= node.places + 2 * node.cells, place + 4 <= usable else { throw NeedsFullCheck() }
        return place
    }

    /// Returns the first overflow page of a cell, and the number of its overflow pages; nil if the whole content is on this
    /// page.
    func overflow(at place: Int, isTable: Bool) throws -> (first: Int, count: Int)? {
        var place = place
        let size = try varint(&place)
        if isTable { _ = try varint(&place) }
        let maxLocal = isTable ? usable - 35 : (usable - 12) * 64 / 255 - 23
        if size <= maxLocal { return nil }
        let minLocal = (usable - 12) * 32 / 255 - 23
        let local = minLocal + (size - minLocal) % (usable - 4)
        let here = local <= maxLocal ? local : minLocal
        guard place + here + 4 <= usable else { throw NeedsFullCheck() }
        return (number(place + here), (size - here + usable - 5) / (usable - 4))
    }

    /// Reads a number of up to nine bytes, high bits first. The result is at most 2^40, which is above any possible size.
    private func varint(_ place: inout Int) throws -> Int {
        var number: UInt64 = 0
        for index in 0..<9 {
            guard place < usable else { throw NeedsFullCheck() }
            let byte = page[place]
            place += 1
            number = index == 8 ? number << 8 | UInt64(byte) : number << 7 | UInt64(byte & 0x7f)
            if byte < 0x80 { break }
        }
        return Int(min(number, 1 << 40))
    }
}
