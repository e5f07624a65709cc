internal import MoultLibc

/// The processes that have a file open, from `/proc`. Locks alone do not show them, because a process can have a file open
/// without holding a lock.
package enum OpenFiles {
    /// Returns the other processes that have one of the files open. Only root can see those of other users.
    package static func holders(of paths: [String]) throws -> [ProcessFacts] {
        let files = try inodes(paths)
        let own = getpid()
        return try Files.list(SystemFeatures.proc).compactMap { Int32($0) }.sorted().filter { pid in
            pid != own && opens("\(pid)", files)
        }.map { ProcessFacts(pid: $0) }
    }

    /// Returns who has one of the files open, for a message: `sqlite3 (pid 12) has it open`. Nil if no such process is visible to
    /// this user. `here` is a file that this process may have open, too.
    package static func users(of paths: [String], here path: String? = nil) throws -> String? {
        var names = try holders(of: paths).map(\.description)
        // If this process cannot list its own open files, the message omits it.
        if let path, (try? isOpenHere(path)) ?? false { names.append("this process") }
        return names.isEmpty ? nil : "\(names.joined(separator: ", ")) \(names.count == 1 ? "has" : "have") it open"
    }

    /// Returns whether this process has the file open. If so, moult must not open and close the file independently of SQLite,
    /// because closing any descriptor of a file drops all POSIX locks that the process holds on the file.
    package static func isOpenHere(_ path: String) throws -> Bool {
        let files = try inodes([path])
        if try Files.facts("\(SystemFeatures.proc)/self/fd") != nil { return opens("self", files) }
        // Without /proc, each descriptor number is tried.
        return (0..<Int32(clamping: min(sysconf(Int32(_SC_OPEN_MAX)), 65_536))).contains { number in
            (try? Syscall.fstat(number)).map { files.contains(FileNumber(FileFacts($0))) } ?? false
        }
    }

    /// Returns a description of a process that has the file open, this one or another; nil if no process has it open.
    package static func holder(of path: String) throws -> String? {
        try isOpenHere(path) ? "this process" : holders(of: [path]).first?.description
    }

    /// Returns whether a process has one of the files open. Returns false if this user may not inspect the process: only root
    /// may inspect processes of other users.
    package static func isOpen(_ paths: [String], in pid: Int32) throws -> Bool { opens("\(pid)", try inodes(paths)) }

    /// Returns false only if the process can be inspected and does not have the file open. A process that took a lock may have
    /// ended, while its child still has the file open.
    static func mayBeOpen(_ facts: FileFacts, in pid: Int32) -> Bool {
        // If the directory cannot be read, the process belongs to another user.
        guard pid > 0, let files = ProcessDescriptors(of: "\(pid)").files, !files.isEmpty else { return true }
        return files.contains { FileNumber($0.facts) == FileNumber(facts) }
    }

    private static func inodes(_ paths: [String]) throws -> Set<FileNumber> {
        Set(try paths.compactMap { try Files.factsThroughLinks($0) }.map { FileNumber($0) })
    }

    private static func opens(_ process: String, _ files: Set<FileNumber>) -> Bool {
        (ProcessDescriptors(of: process).files ?? []).contains { files.contains(FileNumber($0.facts)) }
    }
}

/// Identifies a file independently of its name.
package struct FileNumber: Hashable, Sendable {
    let device: UInt64
    let inode: UInt64
    package init(_ facts: FileFacts) { (device, inode) = (facts.device, facts.inode) }
}
