/// The content of an immutable file, mapped into memory without a copy.
///
/// The pages belong to the system, which reclaims them under memory pressure.
package struct MappedFile: ~Copyable {
    private let start: UnsafeMutableRawPointer
    private let size: Int

    /// The alignment that mapped parts of a file need, large enough for every supported machine.
    package static let alignment = 1 << 16

    /// Maps a non-empty part of a file. With a `split`, the content after that offset comes first, then zeros up to the next
    /// multiple of `alignment`, then the content before the offset. The start of the part and `split` must be multiples of
    /// `alignment`.
    package init(_ file: borrowing Descriptor, _ part: Range<Int>, split: Int? = nil) throws {
        let (number, path) = (file.number, file.path)
        let middle = split ?? part.lowerBound
        let ahead = Self.roundedUp(part.upperBound - middle)
        let whole = split == nil ? part.count : ahead + middle - part.lowerBound
        size = whole
        start = try wrapped("cannot map \(path)") { () throws(Errno) in
            guard let split else { return try Syscall.map(number, at: nil, part.lowerBound, part.count) }
            let start = try Syscall.map(-1, at: nil, 0, whole)
            do throws(Errno) {
                _ = try Syscall.map(number, at: start, split, part.upperBound - split)
                _ = try Syscall.map(number, at: start + ahead, part.lowerBound, split - part.lowerBound)
            } catch {
                // The first error is the one to report.
                try? Syscall.unmap(start, whole)
                throw error
            }
            return start
        }
    }

    package static func roundedUp(_ size: Int) -> Int { (size + alignment - 1) / alignment * alignment }

    // A failure to unmap cannot be handled here.
    deinit { try? Syscall.unmap(start, size) }

    /// Calls `body` with the content, which is valid only during the call.
    package borrowing func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try body(UnsafeRawBufferPointer(start: start, count: size))
    }
}
