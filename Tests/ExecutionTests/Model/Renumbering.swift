import MoultBasics
import MoultFiles

/// Rewrites the records of a recreated store. A store recognizes some of its files by inode and time, which are different after
/// the store was recreated.
struct Renumbering {
    let recording: Recording
    /// The paths at which the files of the disk were created.
    let made: [Disk.ID: String]

    func renumber(_ disk: Disk) throws {
        try disk.walk { path, id, node in
            guard case .file(let bytes) = node, let place = made[id], !bytes.isEmpty else { return }
            switch Files.name(of: path) {
            case "seal.json", "links.json": try rewrite(place, bytes, records)
            default: break
            }
        }
    }

    /// Rewrites a file line by line; incomplete lines from a crash stay unchanged.
    private func rewrite(_ place: String, _ bytes: [UInt8], _ change: (JSON) throws -> JSON) throws {
        let lines = try bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { line in
            guard let json = try? JSON(parsing: Array(line), source: place) else { return Array(line) }
            let changed = try change(json)
            return changed == json ? Array(line) : Array(changed.line.utf8)
        }
        let file = try Descriptor(place, .write)
        try file.truncate(to: 0)
        try file.write(Array(lines.joined(separator: [UInt8(ascii: "\n")])))
        try file.close()
    }

    private func records(_ json: JSON) throws -> JSON {
        guard let files = json["files"]?.array else { return json }
        let changed = try files.map { file -> JSON in
            guard let inode = file["inode"], let facts = try facts(inode) else { return file }
            var file = file.setting("inode", to: .inode(facts))
            file = file.setting("changed", to: .moment(facts.changed))
            return file["modified"] == nil ? file : file.setting("modified", to: .moment(facts.modified))
        }
        return json.setting("files", to: .array(changed))
    }

    /// Returns the metadata of the new file for this old inode; nil if the file is lost.
    private func facts(_ inode: JSON) throws -> FileFacts? {
        guard let number = inode.integer.map({ UInt64(bitPattern: $0) }), let id = recording.inodes[number] else {
            throw Disk.wrong("a record has an inode that no file had")
        }
        return try made[id].flatMap { try Files.facts($0) }
    }
}

extension JSON {
    fileprivate static func inode(_ facts: FileFacts) -> JSON { .integer(Int64(bitPattern: facts.inode)) }
    fileprivate static func moment(_ moment: FileFacts.Moment) -> JSON {
        [.size(moment.seconds), .size(moment.nanoseconds)]
    }
}
