internal import CLinux
package import MoultBasics
internal import MoultLibc

/// Information about a process, from `/proc`.
package struct ProcessFacts: Sendable, Equatable {
    package let pid: Int32
    /// The command line; if it is empty, the kernel's name for the process.
    package let command: String
    /// When the process was started; nil if it has ended in the meantime.
    package let started: Timestamp?

    package init(pid: Int32) {
        self.pid = pid
        // If the process has ended in the meantime, only its ID is known.
        let line = Self.read("cmdline", of: pid)
        let words = line.split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
        if words.isEmpty {
            command = String(decoding: Self.read("comm", of: pid), as: UTF8.self).trimmed
        } else {
            command = words.joined(separator: " ")
        }
        started = Self.start(of: pid)
    }

    /// The effective user ID of the process; nil if it has ended.
    package var user: UInt32? {
        let line = String(decoding: Self.read("status", of: pid), as: UTF8.self).split(separator: "\n").first {
            $0.hasPrefix("Uid:")
        }
        // The line has the real, effective, saved and file system user IDs.
        let users = line?.dropFirst(4).split(whereSeparator: \.isWhitespace) ?? []
        return users.count > 1 ? UInt32(users[1]) : nil
    }

    /// The ID of this process.
    package static var ownPID: Int32 { getpid() }

    /// A one-line description for humans, without the control characters of the command line.
    package var description: String {
        let line = String(String.UnicodeScalarView(command.unicodeScalars.map { $0.value < 32 ? " " : $0 }).prefix(120))
        return "pid \(pid) (\(line.isEmpty ? "unknown" : line))"
    }

    /// Returns the start time of a process: the boot time plus the 22nd field of `/proc/PID/stat`, which is in clock ticks
    /// since boot.
    private static func start(of pid: Int32) -> Timestamp? {
        let bytes = read("stat", of: pid)
        // If the process has ended, its start time is unknown.
        if bytes.isEmpty { return nil }
        // The second field is the name in parentheses, which may contain spaces and parentheses.
        let end = bytes.lastIndex(of: UInt8(ascii: ")")) ?? 0
        let fields = String(decoding: bytes[(end + 1)...], as: UTF8.self).split(ascii: " ")
        let ticks = sysconf(Int32(_SC_CLK_TCK))
        guard fields.count > 19, let since = Int(fields[19]), let boot, ticks > 0 else { return nil }
        return Timestamp(seconds: boot + since / ticks)
    }

    private static func read(_ name: String, of pid: Int32) -> [UInt8] {
        Files.bytes(ofSystemFile: "\(SystemFeatures.proc)/\(pid)/\(name)", limit: 1 << 16)
    }

    /// The boot time, from `/proc/stat`. The file is read only once, because the kernel generates it on each read, with a line
    /// for each processor and interrupt.
    private static let boot: Int? = {
        // Without this file, no start time is known.
        guard let system = try? Files.read("\(SystemFeatures.proc)/stat", limit: 1 << 22) else { return nil }
        return String(decoding: system, as: UTF8.self).split(separator: "\n")
            .first { $0.hasPrefix("btime ") }.flatMap { Int($0.dropFirst(6)) }
    }()
}

/// The environment variables of this process.
package enum ProcessEnvironment {
    /// Returns the value of a variable; nil if it is unset or empty. Throws if it is not valid UTF-8.
    package static func value(_ name: String) throws(MoultError) -> String? {
        guard let bytes = getenv(name), bytes.pointee != 0 else { return nil }
        if let value = OutsideText.valid(bytes) { return value }
        throw OutsideText.error(
            UnsafeRawBufferPointer(start: bytes, count: strlen(bytes)), "the environment variable \(name)",
            now: "Correct the variable, or unset it: \(run: ["unset", name])")
    }

    /// Returns the value of a variable that is not used as a path; nil if it is unset, empty or not valid UTF-8.
    package static func word(_ name: String) -> String? {
        guard let bytes = getenv(name), bytes.pointee != 0 else { return nil }
        return OutsideText.valid(bytes)
    }

    /// The directories in PATH. One whose name is not valid UTF-8 is not searched.
    package static var searchPath: [String] {
        guard let bytes = getenv("PATH") else { return [] }
        return UnsafeRawBufferPointer(start: bytes, count: strlen(bytes)).split(separator: UInt8(ascii: ":"))
            .compactMap { OutsideText.valid($0) }
    }

    /// The variables that are valid UTF-8.
    package static var all: [String: String] {
        var settings: [String: String] = [:]
        for setting in settingsOfProcess {
            guard let text = OutsideText.valid(setting), let equals = text.utf8.firstIndex(of: UInt8(ascii: "="))
            else { continue }
            settings[String(text[..<equals])] = String(text[text.utf8.index(after: equals)...])
        }
        return settings
    }

    /// Returns copies of all variables, with changes, for a child process; the caller frees them. Values that are not valid
    /// UTF-8 stay as they are.
    static func copy(changing changes: [String: String]) -> [UnsafeMutablePointer<CChar>?] {
        let kept = settingsOfProcess.filter { setting in
            guard let equals = strchr(setting, Int32(UInt8(ascii: "="))) else { return false }
            let name = UnsafeRawBufferPointer(start: setting, count: equals - UnsafeMutablePointer(mutating: setting))
            return OutsideText.valid(name).map { changes[$0] == nil } ?? true
        }
        return kept.map { strdup($0) } + changes.sorted { $0.key < $1.key }.map { strdup("\($0.key)=\($0.value)") }
    }

    private static var settingsOfProcess: [UnsafePointer<CChar>] {
        var settings: [UnsafePointer<CChar>] = []
        var next = MoultLibc.environ
        while let setting = next.pointee {
            settings.append(UnsafePointer(setting))
            next += 1
        }
        return settings
    }
}

/// Another process, to which signals can be sent.
///
/// Its ID may be given to another process as soon as this one has ended. So first create the value, then check that this is the
/// intended process, then send: if the process has ended in between, no other process gets the signal. Linux before 5.3 cannot
/// ensure that.
package final class SignalTarget {
    package let pid: Int32
    /// Refers to the process itself, not to its ID; -1 where the system has no such descriptors.
    private let descriptor: Int32

    private init(pid: Int32, descriptor: Int32) { (self.pid, self.descriptor) = (pid, descriptor) }

    // Nothing was written, so closing cannot lose data.
    deinit { if descriptor >= 0 { MoultLibc.close(descriptor) } }

    /// Returns the process with this ID; nil if it does not exist.
    package static func find(pid: Int32) throws -> SignalTarget? {
        let descriptor = moult_pidfd_open(pid)
        if descriptor >= 0 { return SignalTarget(pid: pid, descriptor: descriptor) }
        let code = Errno(moult_errno())
        if code == .noProcess { return nil }
        // Container runtimes that do not know a system call refuse it with EPERM.
        guard [.unknownCall, .notPermitted].contains(code) else { throw code.error("cannot find process \(pid)") }
        return SignalTarget(pid: pid, descriptor: -1)
    }

    /// Sends a signal. Returns false if the process has ended.
    package func send(_ signal: Int32) throws(Errno) -> Bool {
        let answer = descriptor >= 0 ? moult_pidfd_signal(descriptor, signal) : kill(pid, signal)
        if answer == 0 { return true }
        let code = Errno(moult_errno())
        if code == .noProcess { return false }
        throw code
    }
}
