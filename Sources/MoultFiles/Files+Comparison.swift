internal import MoultBasics
internal import MoultLibc

extension Files {
    /// Returns whether two regular files have the same bytes.
    ///
    /// `leased` is a lease that this process has on one of the two. Opening that file would end the lease, so the file is read
    /// through the lease's descriptor. If this process has one of the files open otherwise, the result is false, because
    /// reading would need a second descriptor, and closing that would drop SQLite's locks. Bytes at the offsets `ignored`, which are
    /// at the beginning of the files, are not compared.
    package static func haveSameBytes(
        _ one: String, _ other: String, leased: WriteLease? = nil, except ignored: [Range<Int>] = []
    ) throws -> Bool {
        guard let a = try facts(one), let b = try factsThroughLinks(other), a.kind == .file, b.kind == .file,
            a.size == b.size
        else { return false }
        let held = try leased?.reading { FileNumber(try $0.facts()) }
        func reading<R>(_ path: String, _ facts: FileFacts, _ body: (borrowing Descriptor) throws -> R) throws -> R? {
            if let leased, FileNumber(facts) == held { return try leased.reading(body) }
            if try OpenFiles.isOpenHere(path) { return nil }
            return try body(Descriptor(path, .read))
        }
        return try reading(one, a) { first in
            try reading(other, b) { second in try haveSameBytes(first, second, size: a.size, except: ignored) }
        } == true
    }

    private static func haveSameBytes(
        _ one: borrowing Descriptor, _ other: borrowing Descriptor, size: Int, except ignored: [Range<Int>]
    ) throws -> Bool {
        let block = 1 << 18
        return try withUnsafeTemporaryAllocation(byteCount: 2 * block, alignment: 16) { buffer in
            guard let start = buffer.baseAddress else { return size == 0 }
            var place = 0
            while place < size {
                try LongRead.check(one.path)
                let length = min(block, size - place)
                let first = UnsafeMutableRawBufferPointer(rebasing: buffer[..<length])
                let second = UnsafeMutableRawBufferPointer(rebasing: buffer[block..<block + length])
                let (a, b) = (try one.fill(first, at: place), try other.fill(second, at: place))
                for offset in ignored.joined() where place == 0 && offset < length {
                    (first[offset], second[offset]) = (0, 0)
                }
                guard a == length, b == length, memcmp(start, start + block, length) == 0 else { return false }
                place += length
            }
            return true
        }
    }
}
