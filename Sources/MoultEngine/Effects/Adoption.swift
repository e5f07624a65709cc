internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import MoultStore
internal import MoultTrust
internal import StepKit

/// Keeps, as a separate generation, a file that was at a database's path before moult installed one there.
///
/// All files adopted in one update share the generation. Its manifest lists them as user databases, so that a rollback restores
/// each as the plain, writable file that it was.
final class Adoption: WritableEffect {
    let effect: Effect
    let place: String
    private let path: String
    private let generation: String
    private let transaction: Transaction
    private let product: String
    /// The file, held so that no other process has it open.
    private let old: DrainedFile
    /// Whether the content is replaced in place, so that it is copied, and other processes may keep the file open.
    let isCopied: Bool
    /// The staged file that will be created in place of this one; nil if a link takes its place.
    private let newFile: String?
    /// Whether an earlier process has made the decision: it may have copied another file, which is kept.
    private let isRecovered: Bool

    init(
        _ effect: Effect, path: String, generation: String, transaction: Transaction, product: String,
        isCopied: Bool, newFile: String?, isRecovered: Bool
    ) {
        (self.effect, self.path, self.generation) = (effect, path, generation)
        (self.transaction, self.product, self.isCopied, self.newFile) = (transaction, product, isCopied, newFile)
        self.isRecovered = isRecovered
        place = transaction.layout.file(path)
        old = DrainedFile(place)
    }

    private var directory: String { transaction.layout.generation(generation) }
    private var kept: String { "\(directory)/\(path)" }
    private var isDone: Bool { get throws { try Files.facts(kept) != nil } }

    // MARK: before the decision

    func hold() throws {
        if isCopied { return }
        if try isDone && Files.facts(place)?.inode != Files.facts(kept)?.inode { return }
        try drain()
        // Apps must have the same access to the new file as to the old one.
        if let newFile { try Files.copyAttributes(from: place, to: newFile) }
        // After a crash, programs may write to the file before recovery runs, even if the generation already has a hard link to
        // it, so the digest is recorded again.
        let isThere = try Files.facts(directory) != nil
        if isThere { try Files.setMode(directory, 0o700) }
        try record(Files.facts(place), in: isThere ? directory : nil) {
            try old.lease?.reading { try SHA256.digest(of: $0).hex } ?? ""
        }
    }

    private func drain() throws {
        do { try old.hold() } catch let error as MoultError where error.code == .databaseCorrupt {
            // A file that is not a database is kept unchanged. If it has sidecars, this throws, because SQLite would read them
            // as part of it.
            try old.holdPlainFile()
        }
    }

    /// Copies a database that other processes may keep open. The caller has locked its content.
    func copy(_ connection: Connection) throws {
        let copy = "\(transaction.adopted)/\(path)"
        try Files.ensureDirectory(transaction.adopted, mode: 0o700)
        if try isRecovered && Files.facts(copy) != nil && !connection.hasAll(of: copy) {
            try Removable.moveToQuarantine(copy, path, transaction)
        }
        try Files.remove(copy)
        let target = try Connection(path: copy, access: .readWriteCreate)
        try connection.backup(to: target)
        try target.close()
        try Files.copyAttributes(from: place, to: copy)
        try Files.syncFile(copy)
        try record(Files.facts(copy)) { try SHA256.digest(ofFileAt: copy).hex }
    }

    /// Adds the file to the manifest and the seal of a generation, by default the staged one.
    private func record(_ facts: FileFacts?, in generation: String? = nil, _ digest: () throws -> String) throws {
        guard let facts else { return }
        let generation = generation ?? transaction.adopted
        try Files.ensureDirectory(generation, mode: 0o700)
        let digest = try digest()
        let manifestPath = "\(generation)/\(Generation.manifestName)"
        let sealPath = "\(generation)/\(Seal.fileName)"
        var databases = try Self.read(manifestPath)?["databases"]?.members ?? []
        databases.removeAll { $0.value["path"]?.string == path }
        databases.append(
            JSON.Member(
                effect.database ?? path,
                [
                    "kind": "user", "member": .string(path), "path": .string(path), "size": .size(facts.size),
                    "sha256": .string(digest),
                ]))
        let before = try Self.read(sealPath)
        var sealed = before?["files"]?.array ?? []
        sealed.removeAll { $0["member"]?.string == path }
        // The change time is not known yet, because the hard link that is made later changes it.
        var known = SealedFacts(sha256: digest, facts)
        (known.changed, known.links) = (nil, nil)
        sealed.append(.object([.init("member", .string(path))] + known.members))
        let manifest: JSON = [
            "manifest": 1, "product": .string(product), "version": "0.0.0", "sequence": 0,
            "created": .string(Timestamp.now.description),
            "bundle": ["file": "none", "size": 0, "sha256": .string(String(repeating: "0", count: 64))],
            "databases": .object(databases),
        ]
        let bytes = Array(manifest.pretty.utf8)
        let seal: JSON = [
            "seal": 1, "files": .array(sealed), "manifest": .string(try SHA256.digest(of: bytes).hex),
            "transaction": before?["transaction"] ?? .string(transaction.id),
        ]
        try Files.replace(manifestPath, with: bytes, mode: 0o444)
        try Files.replace(sealPath, with: Array(seal.line.utf8), mode: 0o444)
    }

    private static func read(_ path: String) throws -> JSON? {
        try Files.read(path, limit: 1 << 24).map { try JSON(parsing: $0, source: path) }
    }

    /// Returns whether a newer file has everything that the copy in the generation has. Otherwise someone has put a different file in
    /// place since the crash, and the copy may be the last one.
    private func isContained(in newer: String) throws -> Bool {
        try Files.haveSameBytes(kept, newer) || NonInvasiveReader.has(newer, allOf: kept)
    }

    // MARK: after the decision

    /// Puts the file into the generation: as a copy, as a hard link if a link takes its place, or by a rename. A later effect puts
    /// the release's content at the file's path.
    func perform() throws {
        let copy = "\(transaction.adopted)/\(path)"
        if try Files.facts(directory) == nil {
            try Files.rename(transaction.adopted, to: directory)
        } else if try isCopied && Files.facts(copy) != nil {
            // Recovery has copied the file again, because programs may have written to it since the crash.
            try Files.setMode(directory, 0o700)
            if try isDone && !isContained(in: copy) { try Removable.moveToQuarantine(kept, path, transaction) }
            try Files.rename(copy, to: kept)
            try record(Files.facts(kept), in: directory) { try SHA256.digest(ofFileAt: kept).hex }
        }
        try LeaseFile.make([generation], transaction.layout)
        if try !isDone {
            guard try old.isHeld() else { throw old.inUse() }
            try Files.setMode(directory, 0o700)
            if newFile == nil {
                try Files.hardLink(place, at: kept)
                try old.requireFile(at: kept) { try Files.remove(kept) }
            } else {
                try Files.rename(place, to: kept)
                func moveBack() throws { _ = try Files.renameIfFree(kept, to: place) }
                try old.requireFile(at: kept, undo: moveBack)
                guard try old.isHeld() else {
                    try moveBack()
                    throw old.inUse()
                }
                try Files.syncDirectory(Files.directory(of: place))
            }
        }
        try Files.setMode(directory, 0o555)
        try Files.syncDirectory(directory)
        try Files.syncDirectory(transaction.layout.generations)
    }

    func revert() throws {
        try release()
        if let facts = try Files.facts(kept) {
            try Files.setMode(directory, 0o700)
            let there = try Files.facts(place)
            if try there == nil || Files.target(ofLink: place) != nil {
                // The path has only the release's symlink, or nothing, so the file itself is moved back.
                try Files.rename(kept, to: place)
            } else if facts.inode == there?.inode {
                try Files.remove(kept)
            } else if isCopied {
                if try !isContained(in: place) { try Removable.moveToQuarantine(kept, path, transaction) }
                try Files.remove(kept)
            }
            try Files.syncDirectory(transaction.layout.root)
        }
        guard try Files.facts(directory) != nil else { return }
        if try Files.hasOnly(directory, where: [Generation.manifestName, Seal.fileName].contains) {
            try Files.setMode(directory, 0o700)
            _ = try Files.renameIfFree(directory, to: transaction.adopted)
            try LeaseFile.remove(generation, transaction.layout)
            try Files.syncDirectory(transaction.layout.generations)
        }
    }

    func release() throws { old.release() }

    func finish() throws { try release() }
}
