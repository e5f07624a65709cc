package import MoultBasics
package import MoultFiles

/// The digests of a generation's files when they were verified, and the metadata that identifies each file without
/// reading it. The digest is a file's identity. Inode, size and times are a cache for it: they match as long as the
/// file is untouched. In a copied, moved or restored store they do not match, and then the digest is compared.
package struct Seal: Sendable, Equatable {
    package static let fileName = "seal.json"
    package static let format = 2

    package struct Entry: Sendable, Equatable {
        package let member: String
        let sealed: SealedFacts
        /// Metadata recorded later for a file with the same digest.
        fileprivate var recorded: [SealedFacts] = []
        /// Whether the publisher's signed proof replaced SQLite's check of the file during the installation.
        var isProvenByPublisher = false

        package var sha256: String { sealed.sha256 }

        package init(member: String, sha256: String, facts: FileFacts) {
            (self.member, sealed) = (member, SealedFacts(sha256: sha256, facts))
        }

        fileprivate init(_ fields: Fields) throws {
            (member, sealed) = (try fields.string("member"), try SealedFacts(fields))
            isProvenByPublisher = try fields.optionalString("proof") == "publisher"
        }

        func standing(of path: String) throws -> Standing { try standing(of: path, Files.factsThroughLinks(path)) }

        /// Returns the state of a file whose facts are known; nil means that it is missing.
        func standing(of path: String, _ facts: FileFacts?) throws -> Standing {
            guard let facts else { return .damaged("is missing") }
            if facts.kind != .file { return .damaged("is not a regular file") }
            if facts.size != sealed.size { return .damaged("has \(facts.size) bytes instead of \(sealed.size)") }
            let all = [sealed] + recorded
            if all.contains(where: { $0.match(facts) }) { return .confirmed }
            if try all.contains(where: { try $0.isWritten(facts, path) }) {
                return .damaged("was changed after it was sealed")
            }
            return .unconfirmed
        }
    }

    /// The state of a sealed file, determined without reading it.
    package enum Standing: Equatable {
        /// The file is the verified one.
        case confirmed
        /// The file may be a copy of the verified file: only its digest can tell.
        case unconfirmed
        /// The file differs in a way that a copy does not explain.
        case damaged(String)
    }

    package var entries: [Entry]
    /// The serial of the feed from which the release was installed; nil without a feed.
    var feedSerial: Int?
    package var manifest: String?
    package var transaction: String?
    /// The key list in effect when the release was installed; nil without keys.
    package var keys: KeyChain.Mark?
    /// The IDs of the keys by whose signatures the release was trusted; nil without keys.
    package var signers: [String]?

    package init(entries: [Entry], feedSerial: Int? = nil) { (self.entries, self.feedSerial) = (entries, feedSerial) }

    /// Returns this seal with the metadata that was recorded later for files with the same digests.
    func withRecorded(_ records: [SealedFacts]) -> Seal {
        var seal = self
        for index in entries.indices {
            let sha256 = entries[index].sha256
            seal.entries[index].recorded = records.filter { $0.sha256 == sha256 }
        }
        return seal
    }

    package func entry(_ member: String) -> Entry? { entries.first { $0.member == member } }

    package var json: JSON {
        .record([
            "seal": Self.format, "feedSerial": feedSerial,
            "files": entries.map { entry in
                let proof: [JSON.Member] = entry.isProvenByPublisher ? [.init("proof", "publisher")] : []
                return JSON.object([.init("member", .string(entry.member))] + entry.sealed.members + proof)
            }, "manifest": manifest, "transaction": transaction,
            "keys": keys.map { JSON.record(["pinned": $0.pinned, "list": $0.list]) }, "signers": signers,
        ])
    }

    package init(parsing bytes: [UInt8], source: String) throws {
        let fields = try Fields(record: bytes, source: source)
        feedSerial = try fields.optionalCount("feedSerial")
        manifest = try fields.optionalString("manifest")
        transaction = try fields.optionalString("transaction")
        keys = try fields.optionalObject("keys").map {
            KeyChain.Mark(pinned: try $0.string("pinned"), list: try $0.count("list"))
        }
        signers = try fields.optionalStrings("signers")
        entries = try fields.objects("files").map { try Entry($0) }
    }
}

extension Fields {
    /// Reads a record of the store. The code is that of errors about it.
    init(record bytes: [UInt8], source: String, _ code: MoultError.Code = .generation) throws {
        try self.init(JSON(parsing: bytes, source: source)) { place, why, _ in
            MoultError(code, what: "\(source): \(place) \(why)")
        }
    }
}

/// The metadata of a file at the moment when its digest was verified.
package struct SealedFacts: Sendable, Equatable {
    let sha256: String
    let size: Int
    package let inode: UInt64
    let device: UInt64
    /// The modification time, which does not change with the file's names, owner or mode.
    let modified: FileFacts.Moment
    var changed: FileFacts.Moment
    package var links: Int

    init(sha256: String, _ facts: FileFacts) {
        (self.sha256, size, inode, device) = (sha256, facts.size, facts.inode, facts.device)
        (modified, changed, links) = (facts.modified, facts.changed, facts.links)
    }

    func match(_ facts: FileFacts) -> Bool { inode == facts.inode && size == facts.size && changed == facts.changed }
    func isSameFile(_ facts: FileFacts) -> Bool { inode == facts.inode && device == facts.device }

    /// Returns whether this is the same file, but was written to since. A copy may have the inode of the file that it replaced,
    /// but its creation time is later than this record.
    fileprivate func isWritten(_ facts: FileFacts, _ path: String) throws -> Bool {
        guard isSameFile(facts), modified != facts.modified else { return false }
        return try Files.birth(path).map { $0 <= changed } ?? true
    }

    init(_ fields: Fields) throws {
        sha256 = try fields.string("sha256")
        size = try fields.integer("size")
        inode = UInt64(bitPattern: Int64(try fields.integer("inode")))
        device = UInt64(bitPattern: Int64(try fields.integer("device")))
        (modified, changed) = (try fields.moment("modified"), try fields.moment("changed"))
        links = try fields.integer("links")
    }

    package var members: [JSON.Member] {
        [
            .init("sha256", .string(sha256)), .init("size", .size(size)),
            .init("inode", .integer(Int64(bitPattern: inode))), .init("device", .integer(Int64(bitPattern: device))),
            .init("modified", modified.json), .init("changed", changed.json), .init("links", .size(links)),
        ]
    }
}
