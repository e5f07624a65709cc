import MoultBasics
import MoultFiles

extension Disk {
    /// Reads the content of a directory, and numbers inodes that have no number yet.
    init(reading directory: String, numbering known: Disk? = nil, _ inodes: inout [UInt64: ID]) throws {
        func read(_ path: String, _ id: ID, _ other: ID?) throws {
            var names: [String: ID] = [:]
            for name in try Files.list(path) where !name.hasSuffix("-shm") {
                let place = "\(path)/\(name)"
                guard let facts = try Files.facts(place) else { continue }
                let counterpart = other.flatMap { known?.names($0)[name] }
                let next = inodes[facts.inode] ?? counterpart ?? inodes.count + 1
                inodes[facts.inode] = next
                names[name] = next
                switch facts.kind {
                case .directory: try read(place, next, counterpart)
                case .link: nodes[next] = .link(try Files.target(ofLink: place) ?? "")
                default: nodes[next] = .file(try Files.read(place, limit: 1 << 28) ?? [])
                }
            }
            nodes[id] = .directory(names)
        }
        try read(directory, Self.root, Self.root)
    }

    /// Returns the visible differences between two disks.
    func differences(to other: Disk) -> [String] {
        var found: [String: Node] = [:]
        walk { path, _, node in found[path] = node.withoutNames }
        var differences: [String] = []
        other.walk { path, _, node in
            guard let ours = found.removeValue(forKey: path) else { return differences.append("no \(path)") }
            if ours != node.withoutNames { differences.append("another \(path)") }
        }
        return differences + found.keys.sorted().map { "a \($0) more" }
    }

    /// Creates the content in an empty directory; returns the path of one name of each file.
    func make(in directory: String) throws -> [ID: String] {
        var made: [ID: String] = [:]
        try walk { path, id, node in
            let place = "\(directory)/\(path)"
            if let first = made[id] { return try Files.hardLink(first, at: place) }
            switch node {
            case .directory: try Files.makeDirectory(place)
            case .link(let target): try Files.symlink(to: target, at: place)
            case .file(let bytes):
                let file = try Descriptor(place, .create, mode: 0o644)
                try file.write(bytes)
                try file.close()
            }
            made[id] = place
        }
        return made
    }
}

extension Disk.Node {
    fileprivate var withoutNames: Disk.Node { if case .directory = self { .directory([:]) } else { self } }
}
