internal import MoultBasics
internal import MoultFiles
internal import MoultTrust
internal import StepKit

/// Completes the staged generation: writes the signed manifest, and the seal that identifies the generation's files later.
struct GenerationSealer {
    let transaction: Transaction
    let manifest: Manifest
    let bytes: [UInt8]
    /// The serial of the feed that offered the release.
    let feedSerial: Int?
    /// The key list in effect.
    let keys: KeyChain.Mark?
    /// The keys by whose signatures the release was trusted.
    let signers: [String]?
    /// The databases that steps may have changed after they were unpacked and verified.
    let changed: Set<String>
    /// The databases for which the publisher's proof replaces a check on this machine.
    let proven: Set<String>

    func finish() throws {
        let directory = transaction.generation
        var entries: [Seal.Entry] = []
        // Files shared with another generation are already read-only. Their last hard link has been made, so their metadata is
        // recorded again.
        let linked = try Set(LinkedFiles(transaction.layout).records().map(\.inode))
        try LinkedFiles(transaction.layout).refresh()
        for database in manifest.databases {
            let path = "\(directory)/\(database.member)"
            // The file is sealed after all checks, when most of it has been written back, and before its times are recorded.
            let isLinked = try Files.facts(path).map { linked.contains($0.inode) } ?? false
            let isPublished = !changed.contains(database.name) || database.place == .inPlace
            if database.place == .generation, !isLinked { try Files.seal(path, mode: 0o444) }
            guard let facts = try Files.factsThroughLinks(path) else {
                throw MoultError(
                    .generation, what: "\(path) was not staged", why: "no step created it",
                    now: "Report this as a bug in moult.")
            }
            let digest = try isPublished ? database.sha256 : SHA256.digest(ofFileAt: path).hex
            var entry = Seal.Entry(member: database.member, sha256: digest, facts: facts)
            entry.isProvenByPublisher = isPublished && proven.contains(database.name)
            entries.append(entry)
        }
        try Files.writeNew(bytes, to: "\(directory)/\(Generation.manifestName)", mode: 0o444)
        var seal = Seal(entries: entries, feedSerial: feedSerial)
        (seal.manifest, seal.transaction) = (try SHA256.digest(of: bytes).hex, transaction.id)
        (seal.keys, seal.signers) = (keys, signers)
        try Files.writeNew(Array(seal.json.line.utf8), to: "\(directory)/\(Seal.fileName)", mode: 0o444)
        // Syncs the directory entries, so that a power failure after the switch cannot lose them. The writer of each file has
        // already synced its content.
        try Files.syncDirectory(directory)
    }
}
