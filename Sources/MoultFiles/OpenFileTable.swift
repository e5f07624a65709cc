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

    package static func read(where isWanted: (_ path: String, FileFacts) -> Bool) throws -> OpenFileTable {
        let own = getpid()
        var entries: [Entry] = []
        var unseen = 0
        for pid in try Files.list(SystemFeatures.proc).compactMap({ Int32($0) }).sorted() where pid != own {
            let directory = "\(SystemFeatures.proc)/\(pid)/fd"
            let names: [String]
            do { names = try Files.list(directory) } catch {
                // A process that has ended in the meantime has no open files.
                if Files.isDenied(error) { unseen += 1 }
                continue
            }
            var known: Set<FileNumber> = []
            for name in names {
                // A descriptor may be closed between listing and reading it.
                guard let path = try? Files.target(ofLink: "\(directory)/\(name)"), path.hasPrefix("/"),
                    let facts = try? Files.factsThroughLinks("\(directory)/\(name)"), isWanted(path, facts)
                else { continue }
                let isNew = known.insert(FileNumber(facts)).inserted
                if isNew { entries.append(Entry(pid: pid, path: path, facts: facts)) }
            }
        }
        return OpenFileTable(entries: entries, unseen: unseen)
    }
}
