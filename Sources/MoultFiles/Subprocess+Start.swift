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
            var ends: [Int32] = [-1, -1]
            guard moult_pipe(&ends) == 0 else { throw Errno(moult_errno()).error("cannot create a pipe") }
            started[keyPath: mine] = ends[childReads ? 1 : 0]
            theirs.append(ends[childReads ? 0 : 1])
            return ends[childReads ? 0 : 1]
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
        let program = try command.executable == nil ? find(command.name, in: places) : nil
        let words = command.arguments.map { strdup($0) } + [nil]
        let settings =
            (command.wholeEnvironment.map { $0.sorted { $0.key < $1.key }.map { strdup("\($0.key)=\($0.value)") } }
                ?? ProcessEnvironment.copy(changing: command.environment)) + [nil]
        let (file, directory) = (program.flatMap { strdup($0) }, command.directory.flatMap { strdup($0) })
        defer { for text in words + settings + [file, directory] { free(text) } }
        (child.program, child.directory) = (UnsafePointer(file), UnsafePointer(directory))
        (child.executable, child.is_script) = (
            command.executable?.number ?? -1, command.executable?.isScript == true ? 1 : 0
        )
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
            if error == .noEntry, part.isEmpty, let program, let loader = ProgramLoader.missing(for: program) {
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

    private static func find(_ name: String, in directories: [String]) throws -> String {
        guard let program = program(name, in: directories) else { throw Errno.noEntry.error("cannot run \(name)") }
        return program
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
        let number = moult_memfd()
        guard number >= 0 else { throw Errno(moult_errno()).error("cannot create a file in memory") }
        do {
            try bytes.withUnsafeBytes { all in
                try wrapped("cannot write to a file in memory") { () throws(Errno) in
                    var done = 0
                    while done < all.count {
                        done += try Syscall.pwrite(number, UnsafeRawBufferPointer(rebasing: all[done...]), done)
                    }
                }
            }
            return number
        } catch {
            MoultLibc.close(number)
            throw error
        }
    }
}
