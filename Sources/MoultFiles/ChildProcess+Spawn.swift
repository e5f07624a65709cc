internal import CLinux
internal import Glibc
internal import MoultBasics

extension ChildProcess {
    /// Starts a program; its input can be read to the end from the beginning on.
    static func spawn(
        _ arguments: [String], _ directory: String?, _ environment: [String: String], _ input: [UInt8], isGroup: Bool,
        output: Int32, errors: Int32, confinement: Confinement? = nil
    ) throws -> pid_t {
        if let confinement {
            return try spawn(
                arguments, directory, environment, input, isGroup: isGroup, output: output, errors: errors,
                under: confinement)
        }
        let what = "cannot run \(arguments.first ?? "a program without a name")"
        func check(_ code: Int32) throws {
            if code != 0 { throw Errno(code).error(what) }
        }
        var actions = posix_spawn_file_actions_t()
        try check(posix_spawn_file_actions_init(&actions))
        defer { posix_spawn_file_actions_destroy(&actions) }
        let text = try input.isEmpty ? nil : MemoryFile(input)
        if let text {
            try check(posix_spawn_file_actions_adddup2(&actions, text.number, 0))
        } else {
            try check(posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0))
        }
        defer { withExtendedLifetime(text) {} }
        try check(posix_spawn_file_actions_adddup2(&actions, output, 1))
        try check(posix_spawn_file_actions_adddup2(&actions, errors, 2))
        try check(moult_spawn_addclosefrom(&actions, 3))
        if let directory { try check(moult_spawn_addchdir(&actions, directory)) }
        // A signal that this process ignores or blocks is no business of the child's.
        var attributes = posix_spawnattr_t()
        try check(posix_spawnattr_init(&attributes))
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigemptyset(&signals)
        try check(posix_spawnattr_setsigmask(&attributes, &signals))
        sigaddset(&signals, SIGPIPE)
        sigaddset(&signals, SIGINT)
        sigaddset(&signals, SIGTERM)
        try check(posix_spawnattr_setsigdefault(&attributes, &signals))
        // Group 0 is a new one, whose number is the child's own.
        let flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | (isGroup ? POSIX_SPAWN_SETPGROUP : 0)
        try check(posix_spawnattr_setflags(&attributes, Int16(flags)))

        var pid: pid_t = 0
        try withVectors(arguments, environment) { argv, settings in
            try check(posix_spawnp(&pid, arguments.first ?? "", &actions, &attributes, argv, settings))
        }
        return pid
    }

    private static func spawn(
        _ arguments: [String], _ directory: String?, _ environment: [String: String], _ input: [UInt8], isGroup: Bool,
        output: Int32, errors: Int32, under confinement: Confinement
    ) throws -> pid_t {
        let text = try input.isEmpty ? nil : MemoryFile(input)
        defer { withExtendedLifetime(text) {} }
        let nothing = try Descriptor("/dev/null", .read)
        let program = try find(arguments.first ?? "", environment["PATH"] ?? ownEnvironment["PATH"] ?? "")
        return try withVectors(arguments, environment) { argv, settings in
            try confinement.spawn(
                argv, settings, program: program, in: directory, input: text?.number ?? nothing.number, output: output,
                errors: errors, isGroup: isGroup)
        }
    }

    /// Where a program is: looked for in PATH if it is named without a directory.
    private static func find(_ name: String, _ path: String) throws -> String {
        if name.contains("/") { return name }
        for directory in path.split(separator: ":") where try isProgram("\(directory)/\(name)") {
            return "\(directory)/\(name)"
        }
        throw Errno.noEntry.error("cannot run \(name.isEmpty ? "a program without a name" : name)")
    }

    private static func isProgram(_ path: String) throws -> Bool {
        guard try Files.factsThroughLinks(path)?.kind == .file else { return false }
        do {
            try Syscall.access(path, X_OK)
            return true
        } catch { return false }
    }

    private static func withVectors<R>(
        _ arguments: [String], _ environment: [String: String],
        _ body: ([UnsafeMutablePointer<CChar>?], [UnsafeMutablePointer<CChar>?]) throws -> R
    ) rethrows -> R {
        let argv = arguments.map { strdup($0) } + [nil]
        let settings = merged(environment).map { strdup($0) } + [nil]
        defer { for text in argv + settings { free(text) } }
        return try body(argv, settings)
    }

    private static func merged(_ additions: [String: String]) -> [String] {
        let all = ownEnvironment.merging(additions) { $1 }
        return all.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
    }
}

/// Bytes that a child reads as its input. A pipe would have to be fed while it runs, and breaks if it does not read.
private final class MemoryFile {
    let number: Int32

    init(_ bytes: [UInt8]) throws {
        number = moult_memfd()
        guard number >= 0 else { throw Errno(moult_errno()).error("cannot make a file in memory") }
        let number = self.number
        try bytes.withUnsafeBytes { all in
            try wrapped("cannot write to a file in memory") { () throws(Errno) in
                var done = 0
                while done < all.count {
                    done += try Syscall.pwrite(number, UnsafeRawBufferPointer(rebasing: all[done...]), done)
                }
            }
        }
    }

    // Nobody reads what is left in it.
    deinit { Glibc.close(number) }
}
