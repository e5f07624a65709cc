import MoultBasics
import MoultFiles
import MoultTrust

/// A complete directory tree for comparison: names, kinds, modes, times, inodes and content, but not the record of the last attempt to
/// update, which every such attempt writes.
package struct Tree: Equatable, CustomStringConvertible {
    package let lines: [String]

    package init(_ root: String, times: Bool = true, skipping: Set<String> = []) throws {
        var lines: [String] = []
        func walk(_ path: String, _ name: String) throws {
            guard !skipping.contains(name), !name.hasSuffix(".moult/attempt.json"), let facts = try Files.facts(path)
            else { return }
            var line = "\(name) \(facts.kind) \(String(facts.mode, radix: 8)) \(facts.links)"
            // That record is replaced in its directory.
            if times, name != ".moult", !name.hasSuffix("/.moult") {
                line += " inode \(facts.inode) m \(facts.modified.seconds).\(facts.modified.nanoseconds)"
                line += " c \(facts.changed.seconds).\(facts.changed.nanoseconds)"
            }
            switch facts.kind {
            case .link: line += " -> \(try Files.target(ofLink: path) ?? "")"
            case .file: line += " \(facts.size) \(try SHA256.digest(ofFileAt: path).hex.prefix(16))"
            default: break
            }
            lines.append(line)
            if facts.kind == .directory {
                for child in try Files.list(path) {
                    try walk("\(path)/\(child)", name.isEmpty ? child : "\(name)/\(child)")
                }
            }
        }
        try walk(root, "")
        self.lines = lines
    }

    package var description: String { lines.joined(separator: "\n") }
}
