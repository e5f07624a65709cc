internal import MoultFiles

/// What lies below some paths, by which it is seen afterwards what was changed; reads no file's content.
struct Footprint: Equatable {
    private(set) var entries: [String: FileFacts] = [:]

    /// More than this is not looked at: then only the kernel stands guard.
    private static let most = 20_000

    init(_ paths: [String], skipping isSkipped: (String) -> Bool = { _ in false }) throws {
        for path in paths { try walk(path, isSkipped) }
    }

    private mutating func walk(_ path: String, _ isSkipped: (String) -> Bool) throws {
        guard !isSkipped(path), entries.count < Self.most, let facts = try Files.facts(path) else { return }
        entries[path] = facts
        guard facts.kind == .directory else { return }
        for name in try Files.list(path) { try walk("\(path)/\(name)", isSkipped) }
    }

    /// The paths that are other than before, sorted.
    func changes(since before: Footprint) -> [String] {
        Set(entries.keys).union(before.entries.keys).filter { entries[$0] != before.entries[$0] }.sorted()
    }
}
