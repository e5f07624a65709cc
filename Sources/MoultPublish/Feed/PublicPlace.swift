internal import MoultBasics
internal import MoultFiles
internal import MoultTransport
internal import MoultTrust
internal import StepKit

/// The place from which stores get a feed that the publisher uploads: a URL, or a shell command that gets one file.
struct PublicPlace {
    let source: String
    let connection: Transport
    /// Each file has the whole time.
    private var transport: Transport { Transport(after: connection) }

    struct File {
        let bytes: [UInt8]
        /// The tag that the store has for this version of the file, for a conditional upload.
        var tag: String?
    }

    private var isURL: Bool { ["http://", "https://", "file://"].contains { source.lowercased().hasPrefix($0) } }

    /// Returns a file; nil if the place does not have it.
    func read(_ name: String, limit: Int) throws -> File? {
        guard isURL else {
            return try run(name) { scratch in
                guard let bytes = try Files.read("\(scratch)/file", limit: limit) else { return nil }
                let tag = try Files.read("\(scratch)/tag", limit: 4096) ?? []
                guard let text = OutsideText.valid(tag)?.trimmed else {
                    throw MoultError(
                        .publishing, what: "the tag of the public \(name) is not text: \(OutsideText.shown(tag))",
                        now: "Correct the command after --fetch-with: it writes the tag to $MOULT_TAG_FILE.")
                }
                return File(bytes: bytes, tag: text.isEmpty ? nil : text)
            }
        }
        let place = try Location(source).beside(name)
        guard case .bytes(let bytes, let tag) = try transport.read(place, limit: limit) else { return nil }
        return File(bytes: bytes, tag: tag)
    }

    /// Returns a small file that may be missing.
    func readIfThere(_ name: String) throws -> [UInt8]? {
        do { return try read(name, limit: KeyList.largest)?.bytes } catch {
            // Some servers refuse access to files that do not exist.
            if (error as? MoultError)?.code == .notThere { return nil }
            if isURL { throw error }
            // Most programs report a missing file as a failure. If they fail for the feed, too, the file could not be asked for.
            _ = try read(Feed.fileName, limit: Feed.largest)
            return nil
        }
    }

    /// Gets a file with a known size and digest.
    func download(_ file: Feed.File, to path: String) throws {
        if isURL {
            try transport.download(Location(source).beside(file.name), to: path, size: file.size) { _ in }
        } else {
            let isThere = try run(file.name) { scratch -> Bool? in
                guard try Files.facts("\(scratch)/file") != nil else { return nil }
                try Files.copy("\(scratch)/file", to: path, mode: 0o644)
                return true
            }
            guard isThere == true else { throw missing(file.name) }
        }
        guard try file.isContent(of: path) else {
            try Files.remove(path)
            throw refusal(
                "the public \(file.name) does not match the public feed", "its size or SHA-256 differs",
                "Restore it from a copy, or withdraw its release.")
        }
    }

    func missing(_ name: String) -> MoultError {
        MoultError(
            .publishing, .refused, what: "\(name) is not public, although the public feed lists it", why: nil,
            now: "Restore it from a copy, or publish from the directory that has it.")
    }

    private func run<Result>(_ name: String, _ body: (_ scratch: String) throws -> Result?) throws -> Result? {
        try Files.withScratchDirectory { scratch in
            let ended = try Subprocess.shell(
                source,
                environment: ["MOULT_NAME": name, "MOULT_FILE": "\(scratch)/file", "MOULT_TAG_FILE": "\(scratch)/tag"])
            guard ended.succeeded else {
                throw MoultError(
                    .publishing, what: "cannot read the public \(name)", why: "the command failed: \(ended.complaint)",
                    now: "Nothing was published. For the first feed at this place, add --new.")
            }
            return try body(scratch)
        }
    }

    /// Returns the public feed with the signatures by these keys; nil if the place has none. Nothing is verified yet.
    func feed(for keys: [PublicKey]) throws -> SignedFeed? {
        guard let file = try read(Feed.fileName, limit: Feed.largest) else { return nil }
        var feed = try SignedFeed(file.bytes, signatures: [], tag: file.tag)
        for name in [Feed.fileName, FeedNames.ofSignatures(Feed.fileName, digest: feed.digest)] {
            for place in ["\(name).minisig"] + keys.map({ TrustedKeys.signatureName(of: name, by: $0.id) }) {
                if let bytes = try readIfThere(place) { feed.signatures.append((place, bytes)) }
                // Usually the first signature is enough.
                if feed.isSigned(by: keys) { return feed }
            }
        }
        return feed
    }
}

struct SignedFeed {
    let bytes: [UInt8]
    let digest: String
    var signatures: [(String, [UInt8])]
    /// The tag of the public file; nil for a feed in a directory.
    var tag: String?

    init(_ bytes: [UInt8], signatures: [(String, [UInt8])], tag: String? = nil) throws {
        (self.bytes, self.signatures, self.tag) = (bytes, signatures, tag)
        digest = try SHA256.digest(of: bytes).hex
    }

    /// Returns the IDs of the keys by which the feed has signatures, valid or not.
    func signers() -> Set<KeyID> {
        Set(
            signatures.compactMap { name, file in
                // A file that is not a signature belongs to no key.
                guard let signature = try? Signature(file: file, named: name),
                    SignatureFiles.concerns(name, signature, feed: digest)
                else { return nil }
                return signature.keyID
            })
    }

    /// Returns whether one of the keys has signed the feed. A signature that is named by a digest counts only for that feed.
    func isSigned(by keys: [PublicKey]) -> Bool {
        signatures.contains { file in
            // An invalid signature file proves nothing.
            guard let signature = try? Signature(file: file.1, named: file.0),
                SignatureFiles.concerns(file.0, signature, feed: digest)
            else { return false }
            let signers = keys.filter { $0.id == signature.keyID }
            return !signers.isEmpty && (try? signature.verify(bytes, named: file.0, by: signers)) != nil
        }
    }
}
