internal import MoultBasics
internal import MoultFiles
internal import MoultTrust
internal import StepKit

/// The directory that a web server serves: whoever reads it finds a whole feed at every moment.
struct FeedDirectory {
    let path: String

    func file(_ name: String) -> String { "\(path)/\(name)" }

    /// The present feed; nil before the first.
    func feed() throws -> (feed: Feed, digest: String)? {
        let name = file(Feed.fileName)
        guard let bytes = try Files.read(name, limit: Feed.largest) else { return nil }
        return (try Feed(parsing: bytes, source: name), try SHA256.digest(of: bytes).hex)
    }

    /// Puts a file into the directory under its own name, whole and durable; says whether it is new there.
    ///
    /// What is there already may only be the very same: caches and half-done downloads rely on that.
    func bring(_ source: String, sha256: String, size: Int) throws -> Bool {
        let name = Files.name(of: source)
        let target = file(name)
        if try Files.factsThroughLinks(target) != nil {
            try Self.prove(target, sha256, size)
            return false
        }
        let temporary = file(".\(name).new")
        try Files.remove(temporary)
        do {
            try Files.copy(source, to: temporary, mode: 0o644)
            // The copy is what will be served, so the copy is what is proven.
            try Self.prove(temporary, sha256, size, named: source)
            try Files.seal(temporary, mode: 0o644)
            guard try Files.renameIfFree(temporary, to: target) else { throw Self.taken(target) }
        } catch {
            // The first error is the one to tell; what is left over begins with a dot, and the next attempt removes it.
            try? Files.remove(temporary)
            throw error
        }
        try Files.syncDirectory(path)
        return true
    }

    static func prove(_ file: String, _ sha256: String, _ size: Int, named name: String? = nil) throws {
        guard let facts = try Files.factsThroughLinks(file), facts.size == size,
            try SHA256.digest(ofFileAt: file).hex == sha256
        else {
            if name == nil { throw Self.taken(file) }
            throw MoultError(
                .publishing, .refused, what: "\(name ?? file) is not what the manifest names",
                why: "its size or SHA-256 is another one", now: "Pack the release again.")
        }
    }

    private static func taken(_ file: String) -> MoultError {
        MoultError(
            .publishing, .refused, what: "\(file) is there already, with other content",
            why: "what was published once must not change", now: "Give the release another version.")
    }

    /// Replaces the feed. Its signatures are there before it under its digest, and the usual names follow.
    func replace(_ feed: [UInt8], before: String?, _ signatures: FeedSignatures) throws {
        let (early, usual) = (signatures.earlyName, signatures.usual)
        for (place, bytes) in signatures.early { try write(place, bytes) }
        try write(Feed.fileName, feed)
        for (place, bytes) in usual { try write(place, bytes) }
        let last = before.map { FeedNames.ofSignatures(Feed.fileName, digest: $0) } ?? early
        try tidy { name in
            name.hasPrefix("\(early).") || name.hasPrefix("\(last).") || usual.contains { $0.0 == name }
        }
    }

    /// The signature files for bytes: the first signer's under the usual name, each of several under its own, too.
    func signatures(of bytes: [UInt8], named name: String, by keys: [SecretKey]) throws -> [(String, [UInt8])] {
        try keys.enumerated().flatMap { index, key -> [(String, [UInt8])] in
            let file = try signature(of: bytes, named: name, by: key)
            let own = (TrustedKeys.signatureName(of: name, by: key.publicKey.id), file)
            guard keys.count > 1 else { return [("\(name).minisig", file)] }
            return index == 0 ? [("\(name).minisig", file), own] : [own]
        }
    }

    private func signature(of bytes: [UInt8], named name: String, by key: SecretKey) throws -> [UInt8] {
        try key.sign(bytes, trustedComment: "file:\(name)\thashed").file(
            untrustedComment: "signature from moult secret key \(key.publicKey.id)")
    }

    /// The signatures of a file that are beside it already.
    func signatures(beside path: String) throws -> [(String, [UInt8])] {
        let name = Files.name(of: path)
        return try Files.list(Files.directory(of: path)).filter { $0.hasPrefix("\(name).") && $0.hasSuffix(".minisig") }
            .compactMap { place in
                try Files.read("\(Files.directory(of: path))/\(place)", limit: 1 << 14).map { (place, $0) }
            }
    }

    /// Signatures by the keys that have none among those that are there: the usual name if it is free, else the key's own.
    func adding(
        _ keys: [SecretKey], to there: [(String, [UInt8])], of bytes: [UInt8], named name: String
    ) throws -> [(String, [UInt8])] {
        let signers = try there.map { try Signature(file: $0.1, named: $0.0).keyID }
        let new = keys.filter { !signers.contains($0.publicKey.id) }
        if there.isEmpty { return try signatures(of: bytes, named: name, by: new) }
        return try new.map { key in
            let place = TrustedKeys.signatureName(of: name, by: key.publicKey.id)
            return (place, try signature(of: bytes, named: name, by: key))
        }
    }

    func write(_ name: String, _ bytes: [UInt8]) throws { try Files.replace(file(name), with: bytes) }

    /// Removes signatures of feeds that nobody can be reading any more.
    private func tidy(keeping isKept: (String) -> Bool) throws {
        for name in try Files.list(path)
        where name.hasPrefix("\(Feed.fileName).") && name.hasSuffix(".minisig") && !isKept(name) {
            try Files.remove(file(name))
        }
    }
}

/// The signatures of a feed: under its usual name, and under its digest, where they are before the feed itself.
struct FeedSignatures {
    let earlyName: String
    let early: [(String, [UInt8])]
    let usual: [(String, [UInt8])]

    init(feed: [UInt8], by keys: [SecretKey], in directory: FeedDirectory) throws {
        earlyName = FeedNames.ofSignatures(Feed.fileName, digest: try SHA256.digest(of: feed).hex)
        early = try directory.signatures(of: feed, named: earlyName, by: keys)
        usual = try directory.signatures(of: feed, named: Feed.fileName, by: keys)
    }
}
