internal import MoultLibc

extension Files {
    /// Creates a new file with the content of another: shares blocks where the file system supports that, and copies bytes
    /// otherwise.
    ///
    /// Does not sync the new file; a caller that needs durability must do that.
    package static func copy(_ old: String, to new: String, mode: UInt32) throws {
        try copy(Descriptor(old, .read), to: new, mode: mode)
    }

    /// Copies an open file in the same way. `copied` gets the number of bytes that are copied, and may throw.
    package static func copy(
        _ source: borrowing Descriptor, to new: String, mode: UInt32, copied: (Int) throws -> Void = { _ in }
    ) throws {
        let target = try Descriptor(new, .create, mode: mode)
        try target.setMode(mode)
        if try !target.shareBlocks(of: source) { try target.copyData(of: source, copied) }
        try target.close()
    }

    /// Returns the mode of a new file that is made from these files: 0644 if every user can read all of them, otherwise 0600. The new
    /// file may belong to another group. Missing files do not count.
    package static func mode(ofFileFrom sources: [String]) throws -> UInt32 {
        try sources.allSatisfy { try (factsThroughLinks($0)?.mode ?? 0o644) & 0o044 == 0o044 } ? 0o644 : 0o600
    }

    /// Creates a new file that shares the blocks of another; if the file system does not support that, returns false and leaves
    /// no file.
    package static func shareIfPossible(_ old: String, at new: String, mode: UInt32) throws -> Bool {
        let source = try Descriptor(old, .read)
        let target = try Descriptor(new, .create, mode: mode)
        try target.setMode(mode)
        if try target.shareBlocks(of: source) {
            try target.close()
            return true
        }
        try target.close()
        try remove(new)
        return false
    }
}

extension Descriptor {
    /// Copies all bytes of another file. Holes stay holes: an attacker can make a file of terabytes that has one block.
    fileprivate borrowing func copyData(of source: borrowing Descriptor, _ copied: (Int) throws -> Void) throws {
        try withUnsafeTemporaryAllocation(byteCount: 1 << 20, alignment: 16) { buffer in
            var offset = 0
            while let data = try source.data(from: offset) {
                offset = data.lowerBound
                while offset < data.upperBound {
                    try LongRead.check(source.path)
                    let part = UnsafeMutableRawBufferPointer(
                        rebasing: buffer[..<min(buffer.count, data.upperBound - offset)])
                    let count = try source.read(into: part, at: offset)
                    if count == 0 { return }
                    try write(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(part)[..<count]), at: offset)
                    offset += count
                    try copied(offset)
                }
            }
        }
        let size = try source.facts().size
        if try facts().size < size { try truncate(to: size) }
    }

    /// Returns the next range of the file that is not a hole; nil after the last one.
    private borrowing func data(from offset: Int) throws -> Range<Int>? {
        let (number, path) = (self.number, self.path)
        do throws(Errno) {
            let start = try Syscall.seekData(number, offset)
            return start..<(try Syscall.seekHole(number, start))
        } catch {
            if error == Errno(ENXIO) { return nil }
            // A file system without this call: everything is data.
            if error == Errno(EINVAL) { return offset == 0 ? 0..<Int.max : nil }
            throw error.error("cannot read \(path)")
        }
    }

    /// Shares the blocks of another file; returns false if the file system does not support that.
    borrowing func shareBlocks(of other: borrowing Descriptor) throws -> Bool {
        do throws(Errno) {
            try Syscall.clone(number, other.number)
            return true
        } catch {
            let cannot = [EOPNOTSUPP, EXDEV, EINVAL, ENOTTY, ENOSYS].map { Errno($0) }
            if cannot.contains(error) { return false }
            throw error.error("cannot copy to \(path)")
        }
    }
}
