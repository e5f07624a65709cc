internal import Glibc
internal import MoultBasics
internal import MoultFiles

/// Where paths really lead, so that no link and no `..` leads out of what is granted.
enum PathRules {
    /// The path without links; nil if nothing is there.
    static func resolved(_ path: String) throws -> String? {
        guard let found = realpath(path, nil) else { return nil }
        defer { free(found) }
        return String(cString: found)
    }

    /// Where a path leads that need not be there yet, but whose directory must.
    static func resolvedForWriting(_ path: String) throws -> String? {
        if let there = try resolved(path) { return there }
        let name = Files.name(of: path)
        // A link that leads nowhere would be followed by whoever writes there.
        guard try Files.facts(path) == nil, name != "..", name != ".",
            let directory = try resolved(Files.directory(of: path))
        else { return nil }
        return "\(directory == "/" ? "" : directory)/\(name)"
    }

    static func isInside(_ path: String, _ directory: String) -> Bool {
        path == directory || path.hasPrefix(directory == "/" ? "/" : directory + "/")
    }
}
