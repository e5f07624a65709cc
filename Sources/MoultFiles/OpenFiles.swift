internal import MoultBasics
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

    /// The open descriptors of a process, from `/proc`.
    ///
    /// A machine has thousands of descriptors, and the processes of other users deny access to them. The system calls are therefore
    /// made directly: an error with a message and advice would take longer than the answer of the kernel.
    struct ProcessDescriptors {
        private let directory: String

        init(of process: String) { directory = "\(SystemFeatures.proc)/\(process)/fd" }

        /// The open files, by the names of their descriptors; empty if the process has ended, nil if this user may not inspect it.
        var files: [(name: String, facts: FileFacts)]? {
            var found: [(name: String, facts: FileFacts)] = []
            do {
                let number = try Syscall.open(directory, O_RDONLY | O_DIRECTORY)
                _ = try Files.rawNames(consuming: number, directory) { number, name in
                    // A descriptor may have been closed in the meantime.
                    guard let facts = try? Syscall.stat(name, in: number), let name = OutsideText.valid(name) else {
                        return
                    }
                    found.append((name, FileFacts(facts)))
                }
                return found
            } catch { return error as? Errno == .denied ? nil : found }
        }

        /// Returns the path of the open file, or the kernel's name for anything else; nil if the descriptor was closed in the meantime
        /// or may not be inspected.
        func path(_ name: String) -> String? { try? Files.target("\(directory)/\(name)") }
    }
}

/// Identifies a file independently of its name.
package struct FileNumber: Hashable, Sendable {
    let device: UInt64
    let inode: UInt64
    package init(_ facts: FileFacts) { (device, inode) = (facts.device, facts.inode) }
}

/// The open files of all processes, from `/proc/PID/fd`, read once for many queries.
package struct OpenFileTable: Sendable {
    package struct Entry: Sendable {
        package let pid: Int32
        /// The path known to the kernel; it ends in ` (deleted)` if the file no longer has a name.
        package let path: String
        package let facts: FileFacts
    }

    /// An entry for each wanted file and each process that has it open, except this process.
    package let entries: [Entry]
    /// The number of processes of other users that could not be inspected.
    package let unseen: Int

    /// `isWanted` gets a function for the path: with thousands of processes, asking the kernel for each path would take longer than
    /// everything else.
    package static func read(where isWanted: (FileFacts, _ path: () -> String) -> Bool) throws -> OpenFileTable {
        let own = getpid()
        var entries: [Entry] = []
        var unseen = 0
        for pid in try Files.list(SystemFeatures.proc).compactMap({ Int32($0) }).sorted() where pid != own {
            let descriptors = OpenFiles.ProcessDescriptors(of: "\(pid)")
            guard let files = descriptors.files else {
                unseen += 1
                continue
            }
            var known: Set<FileNumber> = []
            for (name, facts) in files {
                guard isWanted(facts, { descriptors.path(name) ?? "" }),
                    known.insert(FileNumber(facts)).inserted, let path = descriptors.path(name), path.isAbsolutePath
                else { continue }
                entries.append(Entry(pid: pid, path: path, facts: facts))
            }
        }
        return OpenFileTable(entries: entries, unseen: unseen)
    }
}
