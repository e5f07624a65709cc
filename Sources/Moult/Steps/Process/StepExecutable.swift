internal import MoultBasics
internal import MoultFiles
internal import MoultLibc
internal import MoultTrust

/// The program of a step, read once into a sealed file in memory, so that exactly the hashed bytes run.
/// The file itself could be rewritten between hashing and execution, even through an open descriptor. Scripts run from the same
/// copy: the interpreter gets `/dev/fd/3`.
package final class StepExecutable: Sendable {
    package let path: String
    package let sha256: String
    package let isScript: Bool
    let number: Int32

    private static let largest = 256 << 20

    /// Reads the program; throws unless it is a regular file that only root or this user can change.
    package init(_ path: String) throws {
        func refused(_ why: String, _ now: Advice) -> MoultError {
            MoultError(.stepTrust, .refused, what: "\(path) cannot be used as a step", why: why, now: now)
        }
        guard let facts = try Files.factsThroughLinks(path) else {
            throw refused("no such file", "Install it there, or correct \"executable\" in moult.json.")
        }
        guard facts.kind == .file else {
            throw refused("it is not a regular file", "Specify the path of the program file itself.")
        }
        let file = try Descriptor(path, .read)
        let opened = try file.facts()
        guard opened.kind == .file, opened.owner == 0 || opened.owner == geteuid() else {
            throw refused(
                "its owner is user \(opened.owner), but must be root or this user",
                "As root: \(run: ["chown", "root", path])")
        }
        guard opened.mode & 0o022 == 0 else {
            throw refused(
                "other users can write to it (mode \(String(opened.mode, radix: 8)))",
                "\(run: ["chmod", "go-w", path])")
        }
        try PathCustody.check(program: [path])
        guard opened.mode & 0o111 != 0 else { throw refused("it is not executable", "\(run: ["chmod", "+x", path])") }
        guard opened.size <= Self.largest else { throw refused("it is larger than 256 MiB", "Use a smaller program.") }
        number = try MemoryFile.make()
        self.path = path
        let copy = number
        var hash = try SHA256()
        var start: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 18)
        do {
            while true {
                let count = try buffer.withUnsafeMutableBytes { try file.read(into: $0) }
                if count == 0 { break }
                if start.isEmpty { start = Array(buffer.prefix(min(2, count))) }
                try buffer.withUnsafeBytes { bytes in
                    let part = UnsafeRawBufferPointer(rebasing: bytes[..<count])
                    try hash.update(part)
                    try MemoryFile.write(part, to: copy)
                }
            }
            try MemoryFile.seal(number, of: path)
        } catch {
            MoultLibc.close(number)
            throw error
        }
        sha256 = try hash.finish().hex
        isScript = start == Array("#!".utf8)
    }

    // The copy exists only in memory, so a failure to close it loses no data.
    deinit { MoultLibc.close(number) }

    /// Starts the program in the directory `scratch` with the given permissions. When the program or this process ends, the
    /// program's child processes are killed.
    func start(as name: String, _ rights: StepRights, scratch: String) throws -> Subprocess {
        // Some interpreters, such as Perl, read from this descriptor, and start at the offset where the previous one stopped.
        guard !isScript || lseek(number, 0, SEEK_SET) == 0 else {
            throw MoultError(
                .stepTrust, what: "cannot run the step \(name)", why: "cannot seek to the start of \(path)")
        }
        var command = Subprocess.Command([isScript ? path : name], in: scratch)
        command.executable = (number, isScript)
        command.wholeEnvironment = [
            "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": scratch, "TMPDIR": scratch,
            "MOULT_STEP": name, "MOULT_PROTOCOL": "1",
        ]
        command.confinement = try rights.enforced(scratch: scratch).confinement()
        (command.isGroup, command.isSupervised, command.mountsReadOnly) = (true, true, rights.plans)
        do { return try Subprocess(command, input: .pipe) } catch let error as MoultError {
            throw MoultError(
                .stepTrust, what: "cannot run the step \(name): \(path)", why: error.why,
                now: (error.cause as? Errno) == .noEntry
                    ? "Install the interpreter that its first line names." : nil, cause: error)
        }
    }
}

/// The permissions of a step's process, which can read all files, and write only to the granted paths.
package struct StepRights: Sendable {
    package var writable: [String] = []
    /// Paths that a step may read while it plans even if they are in a directory for temporary files.
    package var readable: [String] = []
    var sockets: Profile.Sockets = .none
    /// Whether the step is planning. If so, its process also cannot lock files, and mounts are read-only where the system
    /// allows that.
    package var plans = false

    /// Returns the protection in force, as shown in the plan.
    static func level(mountsReadOnly: Bool) -> String {
        "planned without write access, enforced by Landlock \(Guard.level.landlock)"
            + (mountsReadOnly ? ", seccomp and read-only mounts" : " and seccomp")
    }

    /// Returns these rights as kernel rules, under which no process can leave the step's process group, which is killed as a
    /// whole.
    func enforced(scratch: String) throws -> Guard {
        guard Guard.level.landlock > 0, Guard.level.hasSeccomp else {
            throw MoultError(
                .stepTrust, .refused, what: "external steps cannot be run on this machine",
                why:
                    "this kernel has \(Guard.level.landlock > 0 ? "no seccomp" : "no Landlock"), so moult cannot limit "
                    + "what such a step changes",
                now:
                    "Boot Linux 5.13 or later with Landlock and seccomp enabled, or use releases without external steps."
            )
        }
        return Guard(
            .program(plans: plans, sockets: sockets), reading: plans ? .persistent(also: readable) : .everything,
            writing: writable + [scratch])
    }
}
