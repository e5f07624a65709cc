internal import CLinux
internal import MoultBasics
internal import MoultLibc

extension Subprocess {
    struct Started {
        var pid: Int32 = -1
        var group: Int32 = 0
        var isReadOnly = false
        var input: Int32 = -1
        var output: Int32 = -1
        var errors: Int32 = -1
        var lifeline: Int32 = -1
    }

    static func start(_ command: Command, _ input: Input, _ output: OutputDestination) throws -> Started {
        var started = Started()
        // The child's ends of the pipes, which this process closes after it has started the child.
        var theirs: [Int32] = []
        defer { for number in theirs { MoultLibc.close(number) } }
        func pipe(_ mine: WritableKeyPath<Started, Int32>, childReads: Bool) throws -> Int32 {
            let (output, input) = try Pipe.ends()
            started[keyPath: mine] = childReads ? input : output
            theirs.append(childReads ? output : input)
            return childReads ? output : input
        }
        do {
            var child = moult_child()
            switch input {
            case .nothing:
                child.input = moult_openat(AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC, 0)
                // A container image with a single file, or a chroot, may have no /dev.
                if child.input < 0 { child.input = try memoryFile([]) }
                theirs.append(child.input)
            case .bytes(let bytes):
                child.input = try memoryFile(bytes)
                theirs.append(child.input)
            case .pipe:
                child.input = try pipe(\.input, childReads: true)
                guard moult_fcntl_int(started.input, F_SETFL, O_NONBLOCK) == 0 else {
                    throw Errno(moult_errno()).error("cannot communicate with \(command.name)")
                }
            }
            switch output {
            case .inherited: (child.output, child.errors) = (1, 2)
            case .pipe:
                child.output = try pipe(\.output, childReads: false)
                child.errors = try pipe(\.errors, childReads: false)
            }
            child.dies_with_parent = command.endsWithParent || command.isSupervised ? 1 : 0
            child.lifeline = -1
            if command.isSupervised {
                var ends: [Int32] = [-1, -1]
                guard moult_socket_pair(&ends) == 0 else { throw Errno(moult_errno()).error("cannot create a socket") }
                (started.lifeline, child.lifeline) = (ends[0], ends[1])
                theirs.append(ends[1])
            }
            try run(command, &child, &started)
            return started
        } catch {
            for number in [started.input, started.output, started.errors, started.lifeline] where number >= 0 {
                MoultLibc.close(number)
            }
            throw error
        }
    }

    private static func run(_ command: Command, _ child: inout moult_child, _ started: inout Started) throws {
        let path = (command.wholeEnvironment ?? command.environment)["PATH"]?.split(ascii: ":").map { String($0) }
        let places = path ?? (command.wholeEnvironment == nil ? ProcessEnvironment.searchPath : [])
        let program = command.executable == nil ? program(command.name, in: places) : nil
        if program == nil, command.executable == nil { throw Errno.noEntry.error("cannot run \(command.name)") }
        let words = command.arguments.map { strdup($0) } + [nil]
        let settings =
            (command.wholeEnvironment.map { $0.sorted { $0.key < $1.key }.map { strdup("\($0.key)=\($0.value)") } }
                ?? ProcessEnvironment.copy(changing: command.environment)) + [nil]
        let (file, directory) = (program.flatMap { strdup($0) }, command.directory.flatMap { strdup($0) })
        defer { for text in words + settings + [file, directory] { free(text) } }
        (child.program, child.directory) = (UnsafePointer(file), UnsafePointer(directory))
        child.executable = command.executable?.number ?? -1
        child.is_script = command.executable?.isScript == true ? 1 : 0
        guard command.files.count <= MOULT_MOST_FILES else { throw Errno.invalid.error("cannot run \(command.name)") }
        withUnsafeMutableBytes(of: &child.files) { files in
            for (index, number) in command.files.enumerated() {
                files.storeBytes(of: number, toByteOffset: 4 * index, as: Int32.self)
            }
        }
        child.file_count = Int32(command.files.count)
        (child.is_group, child.mounts_read_only) = (command.isGroup ? 1 : 0, command.mountsReadOnly ? 1 : 0)
        var (group, isReadOnly, failure) = (Int32(0), Int32(0), moult_child_failure())
        started.pid = words.withUnsafeBufferPointer { words in
            settings.withUnsafeBufferPointer { settings in
                (child.arguments, child.environment) = (words.baseAddress, settings.baseAddress)
                guard let confinement = command.confinement else {
                    return moult_start(&child, &group, &isReadOnly, &failure)
                }
                return confinement.with { how in
                    withUnsafePointer(to: how) { how in
                        child.confinement = how
                        return moult_start(&child, &group, &isReadOnly, &failure)
                    }
                }
            }
        }
        (started.group, started.isReadOnly) = (group, isReadOnly != 0)
        guard started.pid > 0 else {
            let (error, part) = (Errno(failure.code), part(failure.part))
            if error == .noEntry, part.isEmpty, let program, let loader = missingLoader(for: program) {
                throw MoultError(
                    .system, what: "cannot run \(command.name)",
                    why: "\(program) exists, but the program that loads it does not: \(loader)", cause: error)
            }
            throw MoultError(
                .system, what: "cannot run \(command.name)", why: part.isEmpty ? "\(error)" : "\(error) (\(part))",
                cause: error)
        }
    }

    /// Returns the name of the operation that failed before the program started; `number` comes from the C code.
    static func part(_ number: Int32) -> String {
        let parts = [
            "", "limits", "privileges", "Landlock", "seccomp", "descriptors", "directory", "", "mounts",
            "process group",
        ]
        return parts.indices.contains(Int(number)) ? parts[Int(number)] : ""
    }

    /// Returns the path of a program; a name without a directory is searched for in the directories.
    static func program(_ name: String, in directories: [String]) -> String? {
        if name.containsSlash { return name }
        return directories.map { "\($0)/\(name)" }.first(where: isProgram)
    }

    private static func isProgram(_ path: String) -> Bool {
        do {
            guard try Files.factsThroughLinks(path)?.kind == .file else { return false }
            try Syscall.access(path, X_OK)
            return true
        } catch { return false }
    }

    /// Returns an in-memory file with these bytes, positioned at the beginning.
    private static func memoryFile(_ bytes: [UInt8]) throws -> Int32 {
        let number = try MemoryFile.makeOpen()
        do {
            try bytes.withUnsafeBytes { try MemoryFile.write($0, to: number, at: 0) }
            return number
        } catch {
            MoultLibc.close(number)
            throw error
        }
    }
}

/// The program that the kernel starts for an executable file: the loader of an ELF file, or the interpreter of a script. If it is missing,
/// the kernel reports that the executable file does not exist.
extension Subprocess {
    /// Returns the loader that a program names, if that file does not exist; nil otherwise, or if the program cannot be read.
    private static func missingLoader(for program: String) -> String? {
        do {
            guard try Files.factsThroughLinks(program)?.kind == .file,
                let path = try loader(in: Files.beginning(of: program, count: 4096)),
                try Files.factsThroughLinks(path) == nil
            else { return nil }
            return path
        } catch {
            // The error that is about to be reported is the important one.
            return nil
        }
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
