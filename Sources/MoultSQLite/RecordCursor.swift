import CSQLite
import MoultFiles
import MoultLibc

/// Walks through a rowid table directly in the file's B-tree (sqlite.org/fileformat2.html, 1.6), and compares rows as bytes,
/// which finds equal rows many times faster than having SQLite decode them. Two records with the same bytes are the same row if
/// both tables have the same columns; SQLite compares all other records. The file must have no WAL and must not change in the
/// meantime: hold a read transaction. Nothing in the file is trusted: if its pages are not those of such a table, the error is
/// `Unreadable`, and SQLite must read the table instead.
package struct RecordCursor: ~Copyable {
    package struct Unreadable: Error {
        package init() {}
    }

    package private(set) var rowID: Int64 = 0

    private let connection: Connection
    private let file: UnsafeMutablePointer<sqlite3_file>
    private let rootPage: Int64
    private let pageSize: Int
    /// The size of a page without the space that extensions reserve at its end.
    private let usable: Int
    /// The pages from the root to the current leaf, which is last.
    private var path: [Page] = []
    private var hasBegun = false
    private var hasRow = false
    /// The current record in its leaf; nil if it continues on other pages.
    private var record: UnsafeRawBufferPointer?

    /// A buffer for the pages that are read ahead when two consecutive pages are requested: most leaves are consecutive.
    private let ahead: UnsafeMutableRawPointer
    private var aheadPages: Range<Int64> = 0..<0
    private static let pagesAhead: Int64 = 32
    private var lastPage: Int64 = 0

    private struct Page {
        let bytes: UnsafeMutableRawPointer
        /// Whether this page owns its bytes; otherwise they are part of the pages read ahead.
        var isOwned = true
        /// The offset of the B-tree header in the page: 100 on the first page, after the file header; otherwise 0.
        var header = 0
        var isLeaf = false
        var cells = 0
        var next = 0

        func free() { if isOwned { bytes.deallocate() } }

        func number16(_ offset: Int) -> Int {
            Int(UInt16(bigEndian: bytes.loadUnaligned(fromByteOffset: header + offset, as: UInt16.self)))
        }
    }

    private static let maxDepth = 20

    package init(_ connection: Connection, rootPage: Int64) throws {
        let file = try connection.file
        let pageSize = try connection.header().pageSize
        var reserved: UInt8 = 0
        try connection.read(file, &reserved, 1, at: 20)
        guard pageSize - Int(reserved) >= 480 else { throw Unreadable() }
        (self.connection, self.file, self.rootPage) = (connection, file, rootPage)
        (self.pageSize, usable) = (pageSize, pageSize - Int(reserved))
        ahead = .allocate(byteCount: pageSize * Int(Self.pagesAhead) + Self.margin, alignment: 16)
        (ahead + pageSize * Int(Self.pagesAhead)).initializeMemory(as: UInt8.self, repeating: 0, count: Self.margin)
    }

    deinit {
        for page in path { page.free() }
        ahead.deallocate()
    }

    package mutating func next() throws -> Bool {
        if !hasBegun {
            hasBegun = true
            try descend(to: rootPage)
        }
        while true {
            guard let last = path.indices.last else { return false }
            if path[last].isLeaf, path[last].next < path[last].cells {
                try take(path[last])
                path[last].next += 1
                return true
            }
            if !path[last].isLeaf, path[last].next <= path[last].cells {
                let child = try child(of: path[last])
                path[last].next += 1
                try descend(to: child)
            } else {
                path.removeLast().free()
            }
        }
    }

    /// Returns whether this row and the other one have the same bytes. Also false if they continue on other pages, which are
    /// not read.
    package func isSame(as other: borrowing RecordCursor) -> Bool {
        guard let record, let other = other.record, record.count == other.count, let one = record.baseAddress,
            let two = other.baseAddress
        else { return false }
        return memcmp(one, two, record.count) == 0
    }

    /// If both cursors are at the first row of leaf pages with the same bytes, moves both to the last row of their page and
    /// returns the number of its rows; otherwise returns nil. Pages with rows that continue on other pages do not qualify, because
    /// those pages may differ.
    package mutating func skipLeaf(ifSameAs other: inout RecordCursor) throws -> Int? {
        guard let leaf = path.last, let otherLeaf = other.path.last, leaf.next == 1, otherLeaf.next == 1,
            leaf.header == otherLeaf.header, leaf.cells == otherLeaf.cells, pageSize == other.pageSize,
            usable == other.usable, memcmp(leaf.bytes, otherLeaf.bytes, pageSize) == 0, try isSelfContained(leaf)
        else { return nil }
        try goToEnd(of: leaf)
        try other.goToEnd(of: otherLeaf)
        return leaf.cells
    }

    private func isSelfContained(_ leaf: Page) throws -> Bool {
        for cell in 0..<leaf.cells {
            var at = leaf.number16(8 + 2 * cell)
            guard at < usable else { throw Unreadable() }
            if Self.varint(leaf.bytes, &at) > UInt64(usable - 35) { return false }
        }
        return true
    }

    private mutating func goToEnd(of leaf: Page) throws {
        guard let last = path.indices.last, leaf.cells > 1 else { return }
        path[last].next = leaf.cells - 1
        try take(path[last])
        path[last].next = leaf.cells
    }

    private mutating func take(_ leaf: Page) throws {
        var at = leaf.number16(8 + 2 * leaf.next)
        guard at < usable else { throw Unreadable() }
        let length = Self.varint(leaf.bytes, &at)
        let id = Int64(bitPattern: Self.varint(leaf.bytes, &at))
        // Ensures that the walk ends, whatever the pages contain.
        guard !hasRow || id > rowID else { throw Unreadable() }
        (rowID, hasRow) = (id, true)
        guard length <= UInt64(usable - 35) else {
            record = nil
            return
        }
        guard at + Int(length) <= usable else { throw Unreadable() }
        record = UnsafeRawBufferPointer(start: leaf.bytes + at, count: Int(length))
    }

    private func child(of page: Page) throws -> Int64 {
        // After the last cell comes the child whose number is in the header.
        let offset = page.next < page.cells ? page.number16(12 + 2 * page.next) : page.header + 8
        guard offset + 4 <= usable else { throw Unreadable() }
        return Int64(UInt32(bigEndian: page.bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
    }

    private mutating func descend(to number: Int64) throws {
        guard number > 0, path.count < Self.maxDepth else { throw Unreadable() }
        let page = try read(number)
        path.append(page)
        let last = path.count - 1
        path[last].cells = page.number16(3)
        switch page.bytes.load(fromByteOffset: page.header, as: UInt8.self) {
        case 0x0D: path[last].isLeaf = true
        case 0x05: break
        default: throw Unreadable()
        }
        // Only a table without any row has an empty page, and pages without rows could make the walk endless.
        guard path[last].cells > 0 || last == 0 && path[last].isLeaf,
            page.header + 12 + 2 * path[last].cells <= usable
        else { throw Unreadable() }
    }

    /// Space after a page, so that a number at its end can be read without a bounds check.
    private static let margin = 32

    private mutating func read(_ number: Int64) throws -> Page {
        defer { lastPage = number }
        let header = number == 1 ? 100 : 0
        if !aheadPages.contains(number), number == lastPage + 1 {
            // Near the end of the file, fewer pages are left, and none are read ahead.
            let isRead = try connection.reads(
                file, ahead, pageSize * Int(Self.pagesAhead), at: (number - 1) * Int64(pageSize))
            aheadPages = isRead ? number..<number + Self.pagesAhead : 0..<0
        }
        let isAhead = aheadPages.contains(number)
        let place = ahead + (isAhead ? Int(number - aheadPages.lowerBound) * pageSize : 0)
        // A leaf is finished before the next page is read; the pages above it stay in memory.
        if isAhead, place.load(fromByteOffset: header, as: UInt8.self) == 0x0D {
            return Page(bytes: place, isOwned: false, header: header)
        }
        let page = Page(bytes: .allocate(byteCount: pageSize + Self.margin, alignment: 16), header: header)
        (page.bytes + pageSize).initializeMemory(as: UInt8.self, repeating: 0, count: Self.margin)
        if isAhead {
            page.bytes.copyMemory(from: place, byteCount: pageSize)
            return page
        }
        do { try connection.read(file, page.bytes, pageSize, at: (number - 1) * Int64(pageSize)) } catch {
            page.free()
            throw error
        }
        return page
    }

    /// Reads a number of one to nine bytes, high bytes first, with seven bits in each except the ninth.
    private static func varint(_ bytes: UnsafeMutableRawPointer, _ at: inout Int) -> UInt64 {
        var value: UInt64 = 0
        for _ in 0..<8 {
            let byte = bytes.load(fromByteOffset: at, as: UInt8.self)
            at += 1
            value = value << 7 | UInt64(byte & 0x7F)
            if byte < 0x80 { return value }
        }
        at += 1
        return value << 8 | UInt64(bytes.load(fromByteOffset: at - 1, as: UInt8.self))
    }
}

extension Connection {
    fileprivate func read(
        _ file: UnsafeMutablePointer<sqlite3_file>, _ bytes: UnsafeMutableRawPointer, _ count: Int, at offset: Int64
    ) throws {
        if try !reads(file, bytes, count, at: offset) { throw RecordCursor.Unreadable() }
    }

    /// Reads bytes of a file; returns false if the file ends before them.
    fileprivate func reads(
        _ file: UnsafeMutablePointer<sqlite3_file>, _ bytes: UnsafeMutableRawPointer, _ count: Int, at offset: Int64
    ) throws -> Bool {
        let code = file.pointee.pMethods?.pointee.xRead?(file, bytes, Int32(count), offset) ?? SQLITE_MISUSE
        // SQLITE_IOERR_SHORT_READ, a macro that Swift cannot import: past the end of the file.
        if code == SQLITE_IOERR | 2 << 8 { return false }
        try check(code, doing: "read \(path)")
        return true
    }
}

extension Connection {
    /// Whether the file alone contains everything that this connection reads: nothing is in a WAL, or waits to be written.
    /// Valid only during a read transaction.
    package var isWholeFile: Bool {
        get throws {
            // The transaction takes its lock only when a statement reads.
            _ = try int("SELECT count(*) FROM main.sqlite_schema")
            guard try isInTransaction, try sqlite3_txn_state(handle, "main") == SQLITE_TXN_READ,
                let name = try sqlite3_db_filename(handle, "main"), name.pointee != 0
            else { return false }
            guard try header().isWAL else { return true }
            return try Sidecars.of(String(cString: name)).wal.map { $0.facts.size == 0 } ?? true
        }
    }
}
