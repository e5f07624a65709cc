import MoultBasics

/// The content of a disk as a value: directories, files and links, each with a unique number.
struct Disk {
    typealias ID = Int

    enum Node: Hashable {
        case directory([String: ID])
        case file([UInt8])
        case link(String)
    }

    static let root: ID = 0
    /// Includes nodes without a name, because a power failure may restore a name that was removed.
    var nodes: [ID: Node] = [root: .directory([:])]

    func names(_ directory: ID) -> [String: ID] {
        if case .directory(let names)? = nodes[directory] { names } else { [:] }
    }

    func content(_ file: ID) -> [UInt8] { if case .file(let bytes)? = nodes[file] { bytes } else { [] } }

    /// Returns the file at a path below the root. Links on the way are followed, but not a link at the end.
    func id(_ path: String) throws -> ID? {
        if path.isEmpty { return Self.root }
        let (directory, name) = try place(path)
        return names(directory)[name]
    }

    /// Returns the directory of a path's last component, and the name of the component.
    func place(_ path: String) throws -> (directory: ID, name: String) {
        var parts = path.split(separator: "/").map { String($0) }
        guard let last = parts.popLast() else { throw Self.wrong("\(path) names nothing in the directory") }
        return (try directory(parts, above: [Self.root]), last)
    }

    private func directory(_ parts: [String], above: [ID]) throws -> ID {
        var above = above
        var parts = parts[...]
        while let part = parts.popFirst() {
            if part == ".." {
                if above.count > 1 { above.removeLast() }
                continue
            }
            let here = above[above.count - 1]
            guard let id = names(here)[part], let node = nodes[id] else { throw Self.wrong("\(part) does not exist") }
            switch node {
            case .directory: above.append(id)
            case .link(let target): parts = target.split(separator: "/").map { String($0) } + parts
            case .file: throw Self.wrong("\(part) is not a directory")
            }
        }
        return above[above.count - 1]
    }

    /// Visits all nodes that have a path.
    func walk(_ visit: (_ path: String, _ id: ID, _ node: Node) throws -> Void) rethrows {
        func walk(_ directory: ID, _ path: String) throws {
            for (name, id) in names(directory).sorted(by: { $0.key < $1.key }) {
                guard let node = nodes[id] else { continue }
                let place = path.isEmpty ? name : "\(path)/\(name)"
                try visit(place, id, node)
                if case .directory = node { try walk(id, place) }
            }
        }
        try walk(Self.root, "")
    }

    /// A number that is the same for disks with the same visible content.
    var fingerprint: Int {
        var hasher = Hasher()
        walk { path, id, node in
            hasher.combine(path)
            if case .directory = node { return }
            hasher.combine(id)
            switch node {
            case .directory: break
            case .link(let target): hasher.combine(target)
            case .file(let bytes): bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
            }
        }
        return hasher.finalize()
    }

    static func wrong(_ what: String) -> MoultError { MoultError(.system, what: "the model of the disk: \(what)") }
}
