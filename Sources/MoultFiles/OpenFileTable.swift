internal import MoultBasics
internal import MoultLibc

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
            let descriptors = ProcessDescriptors(of: "\(pid)")
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
