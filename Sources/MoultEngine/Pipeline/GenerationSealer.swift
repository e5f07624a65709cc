internal import MoultBasics
internal import MoultFiles
internal import MoultStore
internal import MoultTrust
internal import StepKit

/// Completes the staged generation: the manifest as it was signed, and the record by which its files are known again.
struct GenerationSealer {
    let transaction: Transaction
    let manifest: Manifest
    let bytes: [UInt8]
    /// The serial of the feed by which it came.
    let feedSerial: Int?
    /// The key list that counts now.
    let keys: KeyChain.Mark?
    /// The databases that steps were to change after they had been unpacked and verified.
    let changed: Set<String>
    /// The databases for which the publisher's proof stands for a check by this machine.
    let proven: Set<String>
    /// Of the members that were unpacked frame by frame, which does not give the digest of the whole.
    let digests: BackgroundDigest?

    func finish() throws {
        let directory = transaction.generation
        var entries: [Seal.Entry] = []
        // What another generation has, too, is sealed already; it has got its last name now.
        let linked = try Set(LinkedFiles(transaction.layout).records().map(\.inode))
        try LinkedFiles(transaction.layout).refresh()
        for database in manifest.databases {
            let path = "\(directory)/\(database.member)"
            // After all checks, so that the disk has written most of it meanwhile, and before its time is recorded.
            let isLinked = try Files.facts(path).map { linked.contains($0.inode) } ?? false
            let isPublished = !changed.contains(database.name) || database.place == .inPlace
            if database.place == .generation, !isLinked { try seal(path, database, isPublished) }
            guard let facts = try Files.factsThroughLinks(path) else {
                throw MoultError(
                    .generation, what: "\(path) was not staged", why: "no step created it", now: "Report this.")
            }
            let digest = try isPublished ? database.sha256 : SHA256.digest(ofFileAt: path).hex
            var entry = Seal.Entry(member: database.member, sha256: digest, facts: facts)
            entry.isProvenByPublisher = isPublished && proven.contains(database.name)
            entries.append(entry)
        }
        try Files.writeNew(bytes, to: "\(directory)/\(Generation.manifestName)", mode: 0o444)
        var seal = Seal(entries: entries, feedSerial: feedSerial)
        (seal.manifest, seal.transaction, seal.keys) = (try SHA256.digest(of: bytes).hex, transaction.id, keys)
        try Files.writeNew(Array(seal.json.line.utf8), to: "\(directory)/\(Seal.fileName)", mode: 0o444)
        // The names in it, for a power cut after the flip: the writer of each file has synced its content.
        try Files.syncDirectory(directory)
    }

    private func seal(_ path: String, _ database: Database, _ isPublished: Bool) throws {
        try Files.seal(path, mode: 0o444)
        guard isPublished, let digest = try digests?.digest(database.member), digest != database.sha256 else { return }
        throw MoultError(
            .digest, what: "the manifest of release \(manifest.version) contradicts itself",
            why:
                "the frames of \(database.member) make a file with SHA-256 \(digest.prefix(8))…, and the manifest says \(database.sha256.prefix(8))…",
            now: "Report this to the publisher: the release must be packed again.")
    }
}
