internal import MoultLibc

/// The open files of all processes, from `/proc/PID/fd`, read once for many questions.
package struct OpenFileTable: Sendable {
    package struct Entry: Sendable {
        package let pid: Int32
        /// The path as the kernel knows it; it ends in ` (deleted)` where the file has no name any more.
        package let path: String
        package let facts: FileFacts
    }

    /// An entry for each file of each process that was asked for; this process is left out.
    package let entries: [Entry]
    /// How many processes could not be looked into, because they belong to others.
    package let unseen: Int

    package static func read(where isWanted: (_ path: String, FileFacts) -> Bool) throws -> OpenFileTable {
        let own = getpid()
        var entries: [Entry] = []
        var unseen = 0
        for pid in try Files.list(SystemFeatures.proc).compactMap({ Int32($0) }).sorted() where pid != own {
            let directory = "\(SystemFeatures.proc)/\(pid)/fd"
            let names: [String]
            do { names = try Files.list(directory) } catch {
                // One that has ended meanwhile holds nothing.
                if Files.isDenied(error) { unseen += 1 }
                continue
            }
            var known: Set<FileNumber> = []
            for name in names {
                // A descriptor may be closed between the list and the look.
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
