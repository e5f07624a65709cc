internal import CLinux
internal import MoultBasics

/// Open files that a process shares with one that it starts: `Subprocess.Command.files`.
extension Descriptor {
    /// A file in memory of this size, full of zeros.
    package static func inMemory(size: Int) throws -> Descriptor {
        let number = moult_memfd()
        guard number >= 0 else { throw Errno(moult_errno()).error("cannot make a file in memory") }
        let file = Descriptor(owning: number, "a file in memory")
        try file.truncate(to: size)
        return file
    }

    /// One of the files that the process was started with: the first is 0.
    package static func inherited(_ index: Int, _ path: String) -> Descriptor {
        Descriptor(owning: Int32(3 + index), path)
    }

    /// Maps the beginning of the file, for the rest of this process's life; writes to the mapping are in the file.
    package borrowing func mapForWriting(size: Int) throws -> UnsafeMutableRawBufferPointer {
        let (number, path) = (self.number, self.path)
        let start = try wrapped("cannot map \(path)") { () throws(Errno) in try Syscall.mapShared(number, size) }
        return UnsafeMutableRawBufferPointer(start: start, count: size)
    }
}
