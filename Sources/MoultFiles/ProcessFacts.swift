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
            command = String(decoding: Self.read("comm", of: pid), as: UTF8.self).trimmingSuffix { $0 == "\n" }
        } else {
            command = words.joined(separator: " ")
        }
        started = Self.start(of: pid)
    }

    /// The effective user ID of the process; nil if it has ended.
    package var user: UInt32? {
        // A process can end at any time, and this file then cannot be read.
        let bytes = (try? Files.read("\(SystemFeatures.proc)/\(pid)/status", limit: 1 << 14)) ?? []
        let line = String(decoding: bytes, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix("Uid:") }
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

    /// Reads a file of a process; empty if it has ended. A server may have thousands of processes, so this makes no other system
    /// calls.
    private static func read(_ name: String, of pid: Int32) -> [UInt8] {
        // The process may end at any time.
        guard let number = try? Syscall.open("\(SystemFeatures.proc)/\(pid)/\(name)", O_RDONLY) else { return [] }
        defer { _ = MoultLibc.close(number) }
        var bytes: [UInt8] = []
        while bytes.count < 1 << 16 {
            let block = try? [UInt8](unsafeUninitializedCapacity: 1 << 12) { buffer, count in
                count = try Syscall.read(number, UnsafeMutableRawBufferPointer(buffer))
            }
            guard let block else { break }
            bytes += block
            // The kernel fills the buffer if the file is longer.
            if block.count < 1 << 12 { break }
        }
        return bytes
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

extension String {
    func trimmingSuffix(while isTrimmed: (Character) -> Bool) -> String {
        var text = Substring(self)
        while let last = text.last, isTrimmed(last) { text.removeLast() }
        return String(text)
    }
}
