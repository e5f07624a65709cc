internal import MoultBasics

/// The program that the kernel starts for an executable file: the loader of an ELF file, or the interpreter of a script. If it is missing,
/// the kernel reports that the executable file does not exist.
enum ProgramLoader {
    /// Returns the loader that a program names, if that file does not exist; nil otherwise, or if the program cannot be read.
    static func missing(for program: String) -> String? {
        do {
            guard try Files.factsThroughLinks(program)?.kind == .file,
                let path = try loader(in: start(of: program)), try Files.factsThroughLinks(path) == nil
            else { return nil }
            return path
        } catch {
            // The error that is about to be reported is the important one.
            return nil
        }
    }

    private static func start(of program: String) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 4096)
        let file = try Descriptor(program, .read)
        let count = try bytes.withUnsafeMutableBytes { try file.read(into: $0) }
        return Array(bytes.prefix(count))
    }

    private static func loader(in bytes: [UInt8]) -> String? {
        if bytes.starts(with: [0x23, 0x21]) {  // #!
            let line = bytes.dropFirst(2).prefix { $0 != 0x0A }.drop { $0 == 0x20 || $0 == 0x09 }
            return path(line.prefix { $0 != 0x20 && $0 != 0x09 })
        }
        // A 64-bit ELF file for a little-endian machine.
        guard bytes.starts(with: [0x7F, 0x45, 0x4C, 0x46, 2, 1]) else { return nil }
        func number(_ offset: Int, _ size: Int) -> Int? {
            guard offset >= 0, offset <= bytes.count - size else { return nil }
            return Int(exactly: (0..<size).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64(bytes[offset + $1]) })
        }
        guard let table = number(32, 8), table < bytes.count, let step = number(54, 2), let count = number(56, 2) else {
            return nil
        }
        for index in 0..<count {
            let entry = table + index * step
            guard number(entry, 4) == 3 else { continue }  // PT_INTERP
            guard let from = number(entry + 8, 8), let size = number(entry + 32, 8), from < bytes.count,
                size < bytes.count - from
            else { return nil }
            return path(bytes[from..<from + size].prefix { $0 != 0 })
        }
        return nil
    }

    private static func path(_ bytes: ArraySlice<UInt8>) -> String? {
        bytes.first == 0x2F ? String(validating: bytes, as: UTF8.self) : nil
    }
}
