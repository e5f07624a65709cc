internal import CLinux
internal import MoultBasics

/// Creates in-memory files from which programs are executed. Once such a file is sealed, no process can change it.
package enum MemoryFile {
    package static func make() throws -> Int32 {
        guard SystemFeatures.startsPrograms else {
            throw SystemFeatures.unavailable("cannot run a program", because: "cannot start other programs")
        }
        let number = moult_memfd_sealable()
        guard number >= 0 else { throw Errno(moult_errno()).error("cannot create a file in memory") }
        return number
    }

    /// Writes all bytes at the file's current position.
    package static func write(_ bytes: UnsafeRawBufferPointer, to number: Int32) throws {
        var rest = bytes
        while !rest.isEmpty {
            let count = try wrapped("cannot write to a file in memory") { () throws(Errno) in
                try Syscall.write(number, rest)
            }
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        }
    }

    package static func seal(_ number: Int32, of path: String) throws {
        guard moult_seal_memfd(number) == 0 else { throw Errno(moult_errno()).error("cannot seal a copy of \(path)") }
    }
}

/// Open files that a process shares with a child process: `Subprocess.Command.files`.
extension Descriptor {
    /// Returns an in-memory file of this size, filled with zeros.
    package static func inMemory(size: Int) throws -> Descriptor {
        let number = moult_memfd()
        guard number >= 0 else { throw Errno(moult_errno()).error("cannot create a file in memory") }
        let file = Descriptor(owning: number, "a file in memory")
        try file.truncate(to: size)
        return file
    }

    /// Returns one of the `Subprocess.Command.files` that this process was started with; the first has index 0.
    package static func inherited(_ index: Int, _ path: String) -> Descriptor {
        Descriptor(owning: Int32(3 + index), path)
    }

    /// Maps the beginning of the file until this process ends; writes to the mapping go to the file.
    package borrowing func mapForWriting(size: Int) throws -> UnsafeMutableRawBufferPointer {
        let (number, path) = (self.number, self.path)
        let start = try wrapped("cannot map \(path)") { () throws(Errno) in try Syscall.mapShared(number, size) }
        return UnsafeMutableRawBufferPointer(start: start, count: size)
    }
}
