internal import MoultBasics
internal import MoultFiles

/// Metadata of sealed files that changed after the files were sealed: `.moult/links.json`. A release that does not change a
/// file gets a second hard link to it if the file system cannot share blocks, and each link that is added or removed changes
/// the ctime. In a copied store, the metadata of every file differs from its seal. Once a file has been verified, its metadata
/// is recorded here, under its digest.
package struct LinkedFiles {
    private let layout: StoreLayout
    private var path: String { layout.links }
    package init(_ layout: StoreLayout) { self.layout = layout }

    /// Makes a sealed file available at another path, without copying it if the file system allows that.
    package func take(_ file: String, sha256: String, to target: String) throws {
        if try Files.shareIfPossible(file, at: target, mode: 0o444) { return }
        guard let facts = try Files.facts(file) else {
            throw MoultError(.digest, what: "\(file) cannot be reused", why: "it no longer exists")
        }
        // The metadata is recorded before the link exists, so that a crash in between is noticed.
        try add(SealedFacts(sha256: sha256, facts))
        if try !Files.hardLinkIfPossible(file, at: target) { try Files.copy(file, to: target, mode: 0o444) }
    }

    func add(_ facts: SealedFacts) throws {
        try write(records().filter { $0.inode != facts.inode || $0.device != facts.device } + [facts])
    }

    package func records() throws -> [SealedFacts] {
        guard let bytes = try Files.read(path, limit: 1 << 24) else { return [] }
        do {
            return try Fields(record: bytes, source: path).objects("files").map { try SealedFacts($0) }
        } catch is MoultError {
            // The record only saves work: without it, files with other metadata than in their seals are read again.
            return []
        }
    }

    /// Records ctimes again after links were added or removed, and drops the records of files that no generation has. A file that
    /// was written to, or whose ctime changed for another reason, keeps its old record, and must be verified again.
    func refresh() throws {
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
        let json: JSON = ["links": 1, "files": .array(records.map { .object($0.members) })]
        try Files.replace(path, with: Array(json.line.utf8))
    }
}

extension FileFacts.Moment {
    var json: JSON { [.size(seconds), .size(nanoseconds)] }
}

extension Fields {
    /// Returns a time of the file system, as seconds and nanoseconds.
    func moment(_ name: String) throws -> FileFacts.Moment {
        let parts = json(name)?.array?.compactMap(\.integer) ?? []
        guard parts.count == 2 else { throw fail(name, "must be seconds and nanoseconds") }
        return FileFacts.Moment(seconds: Int(parts[0]), nanoseconds: Int(parts[1]))
    }
}
