internal import MoultBasics
internal import MoultFiles

/// Sealed files that several generations have in common, because a release did not change them.
///
/// Where the file system cannot share blocks they have a name in each generation. Each name that comes or goes changes
/// the file's time of change, by which its seal knows it; so that time is recorded here anew.
struct LinkedFiles {
    private let layout: StoreLayout
    private var path: String { layout.links }

    init(_ layout: StoreLayout) { self.layout = layout }

    struct Record: Equatable {
        let sha256: String
        let size: Int
        let inode: UInt64
        /// Changes when something is written, and not with the names.
        let modified: FileFacts.Moment
        var changed: FileFacts.Moment
    }

    /// Brings a sealed file to another place without copying it, unless the file system can do nothing else.
    func take(_ file: String, sha256: String, to target: String) throws {
        if try Files.shareIfPossible(file, at: target, mode: 0o444) { return }
        guard let facts = try Files.facts(file) else {
            throw MoultError(.digest, what: "\(file) cannot be used again", why: "it is not there any more")
        }
        // Before the name is there, so that a crash in between is noticed.
        let record = Record(
            sha256: sha256, size: facts.size, inode: facts.inode, modified: facts.modified, changed: facts.changed)
        try write(records().filter { $0.inode != facts.inode } + [record])
        if try !Files.hardLinkIfPossible(file, at: target) { try Files.copy(file, to: target, mode: 0o444) }
    }

    func records() throws -> [Record] {
        guard let bytes = try Files.read(path, limit: 1 << 24) else { return [] }
        let source = path
        let fields = try Fields(JSON(parsing: bytes, source: source)) { place, why, _ in
            MoultError(.generation, what: "\(source): \(place) \(why)")
        }
        return try fields.objects("files").map { file in
            Record(
                sha256: try file.string("sha256"), size: try file.integer("size"),
                inode: UInt64(bitPattern: Int64(try file.integer("inode"))), modified: try file.moment("modified"),
                changed: try file.moment("changed"))
        }
    }

    /// Records the times of change anew after names have come or gone; forgets files that no generation has.
    ///
    /// A file that was written to meanwhile keeps its old record, and does not fit its seal any more.
    func refresh() throws {
        let before = try records()
        if before.isEmpty { return }
        var found: [UInt64: FileFacts] = [:]
        for generation in try Generation.names(layout) {
            let directory = layout.generation(generation)
            for name in try Files.list(directory) {
                if let facts = try Files.facts("\(directory)/\(name)") { found[facts.inode] = facts }
            }
        }
        let after = before.compactMap { record -> Record? in
            guard let facts = found[record.inode] else { return nil }
            var record = record
            if facts.size == record.size, facts.modified == record.modified { record.changed = facts.changed }
            return record
        }
        if after != before { try write(after) }
    }

    private func write(_ records: [Record]) throws {
        let json: JSON = [
            "links": 1,
            "files": .array(
                records.map {
                    [
                        "sha256": .string($0.sha256), "size": .size($0.size),
                        "inode": .integer(Int64(bitPattern: $0.inode)), "modified": $0.modified.json,
                        "changed": $0.changed.json,
                    ]
                }),
        ]
        try Files.replace(path, with: Array(json.line.utf8))
    }
}

extension FileFacts.Moment {
    var json: JSON { [.size(seconds), .size(nanoseconds)] }
}

extension Fields {
    /// A time of the file system, as seconds and nanoseconds.
    func moment(_ name: String) throws -> FileFacts.Moment {
        let parts = json(name)?.array?.compactMap(\.integer) ?? []
        guard parts.count == 2 else { throw fail(name, "must be seconds and nanoseconds") }
        return FileFacts.Moment(seconds: Int(parts[0]), nanoseconds: Int(parts[1]))
    }
}
