internal import MoultBasics
internal import MoultFiles
internal import MoultTrust
internal import StepKit

struct SealedRelease {
    let path: String
    let manifest: Manifest
    let bytes: [UInt8]
    let options: PublishOptions

    init(_ path: String, options: PublishOptions) throws {
        self.path = path
        self.options = options
        let advice: Advice = "Specify the manifest of a release, such as releases/app-1.0.0.json."
        guard let bytes = try Files.read(path, limit: Manifest.largest) else {
            throw MoultError(.publishing, what: "no manifest at \(path)", why: "no such file", now: advice)
        }
        self.bytes = bytes
        do { manifest = try Manifest(parsing: bytes, as: .sealed, source: path) } catch var error as MoultError {
            if error.code == .json { error.now = error.now ?? advice }
            throw error
        }
        let name = Files.name(of: path)
        if let fault = PlainName.fault(name) { throw refusal("\(path) cannot be published", "its name \(fault)") }
        if let database = manifest.databases.first(where: { $0.place == .inPlace }) {
            throw refusal(
                "release \(manifest.version) cannot be published",
                "its database \(database.name) has \"place\": \"in-place\", and a feed contains bundles only",
                "Remove \"place\" from the draft, and pack the release again.")
        }
    }

    /// Throws unless the bundle next to the manifest has the size and digest in the manifest.
    func verifyBundle() throws {
        guard let bundle = manifest.bundle else { return }
        let file = "\(Files.directory(of: path))/\(bundle.file)"
        try bundle.content.verify(file, named: file)
    }

    var entry: Feed.Release {
        get throws {
            var entry = Feed.Release(
                version: manifest.version, sequence: manifest.sequence, channel: options.channel,
                manifest: Feed.File(
                    name: Files.name(of: path), size: bytes.count, sha256: try SHA256.digest(of: bytes).hex),
                requires: manifest.requires, rollout: options.rollout)
            entry.groups = options.groups
            return entry
        }
    }

    /// Returns the patches from a release in the feed, if they save bytes and their files are next to the manifest.
    func patches(from base: Feed.Release, _ new: [SealedRelease], _ directory: FeedDirectory) throws -> [Manifest.Patch]
    {
        guard !manifest.patches.isEmpty else { return [] }
        var older = new.first { $0.manifest.version == base.version }?.manifest
        let path = directory.file(base.manifest.name)
        if older == nil, let bytes = try Files.read(path, limit: Manifest.largest) {
            older = try Manifest(parsing: bytes, as: .sealed, source: path)
        }
        let source = Files.directory(of: self.path)
        let there = try Set(
            manifest.patches.filter { try Files.factsThroughLinks("\(source)/\($0.file)")?.size == $0.size }.map(\.file)
        )
        return older.flatMap { manifest.worthwhilePatches(from: $0) { there.contains($0.file) } } ?? []
    }

    /// Copies the bundle, the patches, the signatures and the manifest to the files to be published, each after the files that
    /// it names. Returns the names of the new files, without the signatures.
    func stage(
        for directory: FeedDirectory, in feed: Feed, _ signatures: [(String, [UInt8])], by work: WorkDirectory,
        to set: inout FileSet
    ) throws -> [String] {
        func staged(_ files: [Feed.File]) throws -> [String] {
            try files.filter { try directory.stage($0, from: Files.directory(of: path), in: work.ready) }.map(\.name)
        }
        let files = try staged(manifest.files(listedFor: feed.release(manifest.version)))
        for (place, file) in signatures { try work.add(place, file) }
        let own = try staged([entry.manifest])
        set.first += files + signatures.map(\.0) + own
        return files + own
    }

    /// Returns the manifest's signatures that are not in the directory yet: those next to the packed manifest, and new ones by
    /// release keys.
    ///
    /// If stores require signatures in addition to the digest in the feed, these signatures must be sufficient. `wrong` are
    /// files in the directory that are not signatures of this manifest, because an older manifest had the same name.
    func signatures(
        in directory: FeedDirectory, by keys: SigningKeys
    ) throws -> (new: [(String, [UInt8])], wrong: [String]) {
        let name = Files.name(of: path)
        let known = keys.known
        let found = try SignatureFiles.beside(directory.file(name))
        let isThere = try Files.facts(directory.file(name)) != nil
        // If the manifest is missing, these files are from an attempt to publish a different one.
        let wrong = found.filter { !isThere || SignatureFiles.isWrong($0, of: bytes, by: known) }.map(\.0)
        let there = found.filter { !wrong.contains($0.0) }
        let own = try SignatureFiles.beside(path).filter { new in
            !there.contains { $0.0 == new.0 } && !SignatureFiles.isWrong(new, of: bytes, by: known)
        }
        let added =
            try keys.isSplit || there.isEmpty && own.isEmpty
            ? directory.adding(keys.release, to: there + own, of: bytes, named: name) : []
        try keys.verify(manifest: bytes, there + own + added, named: name)
        return (own + added, wrong)
    }
}
