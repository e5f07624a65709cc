internal import MoultBasics
internal import MoultFiles

/// Facts of sealed files that changed since the files were sealed: `.moult/links.json`.
///
/// A release that does not change a file has it under a second name where the file system cannot share blocks, and each
/// name that comes or goes changes the file's ctime. In a copied store every file has other facts than its seal. The facts
/// are recorded here again, by the file's digest, after it was verified.
package struct LinkedFiles {
    private let layout: StoreLayout
    private var path: String { layout.links }

    package init(_ layout: StoreLayout) { self.layout = layout }

    /// Brings a sealed file to another place without copying it, unless the file system can do nothing else.
    package func take(_ file: String, sha256: String, to target: String) throws {
        if try Files.shareIfPossible(file, at: target, mode: 0o444) { return }
        guard let facts = try Files.facts(file) else {
            throw MoultError(.digest, what: "\(file) cannot be used again", why: "it no longer exists")
        }
        // Before the name is there, so that a crash in between is noticed.
        try add(SealedFacts(sha256: sha256, facts))
        if try !Files.hardLinkIfPossible(file, at: target) { try Files.copy(file, to: target, mode: 0o444) }
    }

    /// Records the facts of a file whose digest was just verified.
    func add(_ facts: SealedFacts) throws {
        try write(records().filter { $0.inode != facts.inode || $0.device != facts.device } + [facts])
    }

    package func records() throws -> [SealedFacts] {
        guard let bytes = try Files.read(path, limit: 1 << 24) else { return [] }
        let source = path
        let fields = try Fields(JSON(parsing: bytes, source: source)) { place, why, _ in
            MoultError(.generation, what: "\(source): \(place) \(why)")
        }
        return try fields.objects("files").map { try SealedFacts($0) }
    }

    /// Records the times of change again after names have come or gone; forgets files that no generation has.
    ///
    /// A file that was written to meanwhile keeps its old record, and does not match its seal any more. So does a file
    /// whose time changed for another reason than its names: it must be verified again.
    package func refresh() throws {
        let before = try records()
        if before.isEmpty { return }
        var found: [UInt64: FileFacts] = [:]
        for generation in try Generation.names(layout) {
            let directory = layout.generation(generation)
            for name in try Files.list(directory) {
                if let facts = try Files.factsThroughLinks("\(directory)/\(name)") { found[facts.inode] = facts }
            }
        }
        let after = before.compactMap { record -> SealedFacts? in
            guard let facts = found[record.inode], record.isSameFile(facts) else { return nil }
            var record = record
            if facts.size == record.size, facts.modified == record.modified, facts.links != record.links {
                (record.changed, record.links) = (facts.changed, facts.links)
            }
            return record
        }
        if after != before { try write(after) }
    }

    private func write(_ records: [SealedFacts]) throws {
        let json: JSON = [
            "links": 1,
            "files": .array(
                records.map { .object($0.members) }),
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
