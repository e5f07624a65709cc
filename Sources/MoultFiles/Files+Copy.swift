internal import MoultLibc

extension Files {
    /// Creates a new file with the content of another: shares blocks where the file system supports that, and copies bytes
    /// otherwise.
    ///
    /// Does not sync the new file; a caller that needs durability must do that.
    package static func copy(_ old: String, to new: String, mode: UInt32) throws {
        try copy(Descriptor(old, .read), to: new, mode: mode)
    }

    /// Copies an open file in the same way. Its read position must be at the beginning.
    package static func copy(_ source: borrowing Descriptor, to new: String, mode: UInt32) throws {
        let target = try Descriptor(new, .create, mode: mode)
        try target.setMode(mode)
        if try !target.shareBlocks(of: source) {
            try withUnsafeTemporaryAllocation(byteCount: 1 << 20, alignment: 16) { buffer in
                while true {
                    let count = try source.read(into: buffer)
                    if count == 0 { break }
                    try target.write(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<count]))
                }
            }
        }
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
