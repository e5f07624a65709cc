internal import MoultBasics
internal import MoultFiles
internal import StepKit

/// The results of the latest checks of writable databases, so that an unchanged file need not be opened again. Only sound
/// databases are recorded. A database is identified by the metadata of its file and sidecars, which is different in a copied
/// store, so the copy is checked again.
struct CheckRecord {
    struct Entry: Equatable {
        let database: String
        let path: String
        let generation: String
        let facts: String
        let depth: Assessment.Depth
        let time: Timestamp
    }

    private let path: String
    private let root: String
    private let before: [Entry]
    private(set) var entries: [Entry]

    /// Reads the record. A record that cannot be read is ignored, because it only saves work.
    init(_ layout: StoreLayout) throws {
        (path, root) = (layout.checks, layout.root)
        let bytes = (try? Files.read(path, limit: 1 << 22)) ?? []
        let json = bytes.isEmpty ? nil : try? JSON(parsing: bytes, source: path)
        before = (json?["databases"]?.array ?? []).compactMap(Self.entry)
        entries = before
    }

    private static func entry(_ json: JSON) -> Entry? {
        guard let database = json["database"]?.string, let path = json["path"]?.string,
            let generation = json["generation"]?.string, let facts = json["facts"]?.string,
            let depth = json["depth"]?.string.flatMap(Assessment.Depth.init),
            let time = json["time"]?.string.flatMap({ Timestamp($0) })
        else { return nil }
        return Entry(database: database, path: path, generation: generation, facts: facts, depth: depth, time: time)
    }

    /// Returns the recorded check of the current file, and the file's size; nil if the file has changed.
    func known(_ database: Database, at place: String, _ generation: String) throws -> (Entry, size: Int)? {
        guard
            let entry = entries.first(where: {
                $0.database == database.name && $0.path == place && $0.generation == generation
            }), let file = try Self.look(at: place), file.text == entry.facts
        else { return nil }
        return (entry, file.size)
    }

    /// Returns the metadata that identifies a file and its sidecars; nil if the file does not exist.
    static func facts(of place: String) throws -> String? { try look(at: place)?.text }

    private static func look(at place: String) throws -> (text: String, size: Int)? {
        guard var file = try Files.facts(place) else { return nil }
        var path = place
        if file.kind == .link {
            path = Files.resolvedIfThere(place)
            guard let target = try Files.facts(path) else { return nil }
            file = target
        }
        guard file.kind == .file else { return nil }
        let all = [file] + [try Files.facts("\(path)-wal"), try Files.facts("\(path)-journal")].compactMap(\.self)
        return (
            all.map { "\($0.device):\($0.inode):\($0.size):\($0.modified.text):\($0.changed.text)" }
                .joined(separator: " "), file.size
        )
    }

    mutating func note(
        _ database: Database, at place: String, _ generation: String, _ facts: String, _ depth: Assessment.Depth,
        since time: Timestamp
    ) {
        forget(database, at: place)
        entries.append(
            Entry(database: database.name, path: place, generation: generation, facts: facts, depth: depth, time: time))
    }

    mutating func forget(_ database: Database, at place: String) {
        entries.removeAll { $0.database == database.name || $0.path == place }
    }

    func write() throws {
        if entries == before { return }
        // moult creates only a regular file here, so anything else is moved away.
        if let facts = try Files.facts(path), facts.kind != .file {
            try Files.rename(path, to: try Files.firstFree("\(root)/\(Files.name(of: path)).old"))
        }
        let json: JSON = .record([
            "checks": 1,
            "databases": entries.map {
                JSON.record([
                    "database": $0.database, "path": $0.path, "generation": $0.generation, "facts": $0.facts,
                    "depth": $0.depth.rawValue, "time": $0.time.description,
                ])
            },
        ])
        // The content is not synced, because a record that a power failure tears is ignored. The directory also has the name of the
        // announcement.
        try Files.replace(path, with: Array(json.line.utf8), durable: false)
        try Files.syncDirectory(Files.directory(of: path))
    }
}

extension FileFacts.Moment {
    fileprivate var text: String { "\(seconds).\(nanoseconds)" }
}
