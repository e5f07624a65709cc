package import MoultBasics

/// A detached minisign signature (`.minisig`), which proves nothing until a key has verified it.
package struct Signature: Hashable, Sendable {
    /// The ID of the signing key, as stated in the signature file.
    package let keyID: KeyID
    /// Whether the signature is over the BLAKE2b digest (`ED`), as made by current versions of minisign, or over the bytes
    /// (`Ed`).
    let isPrehashed: Bool
    let bytes: [UInt8]
    /// The trusted comment, which only `verify` returns, after verifying it.
    let unprovenComment: String
    /// A signature over the signature and the trusted comment together, so that neither can be replaced.
    let commentSignature: [UInt8]

    init(keyID: KeyID, isPrehashed: Bool, bytes: [UInt8], unprovenComment: String, commentSignature: [UInt8]) {
        (self.keyID, self.isPrehashed, self.bytes) = (keyID, isPrehashed, bytes)
        (self.unprovenComment, self.commentSignature) = (unprovenComment, commentSignature)
    }

    /// Reads a signature file.
    package init(file bytes: [UInt8], named name: String) throws {
        let text = try MinisignText(bytes, kind: "signature", named: name, lines: 4)
        _ = try text.comment(line: 0, prefix: MinisignText.untrusted)
        let fields = try text.bytes(line: 1, count: 2 + KeyID.size + Ed25519.signatureSize)
        let isPrehashed = fields.starts(with: "ED".utf8)
        guard isPrehashed || fields.starts(with: "Ed".utf8) else { throw text.error("its algorithm is not Ed25519") }
        self.init(
            keyID: KeyID(fields[2..<10]), isPrehashed: isPrehashed, bytes: Array(fields[10...]),
            unprovenComment: try text.comment(line: 2, prefix: MinisignText.trusted),
            commentSignature: try text.bytes(line: 3, count: Ed25519.signatureSize))
    }

    /// Returns the content of a signature file in minisign's format. The untrusted comment is for humans who read the file.
    package func file(untrustedComment: String) throws -> [UInt8] {
        try MinisignText.check(comment: untrustedComment)
        let fields = Array((isPrehashed ? "ED" : "Ed").utf8) + keyID.bytes + bytes
        let untrusted = "\(MinisignText.untrusted)\(untrustedComment)\n\(Base64.encode(fields))\n"
        let trusted = "\(MinisignText.trusted)\(unprovenComment)\n\(Base64.encode(commentSignature))\n"
        return Array((untrusted + trusted).utf8)
    }
}

extension Signature {
    /// The key that signed, and the trusted comment.
    package typealias Verified = (key: PublicKey, trustedComment: String)

    /// Verifies that one of `keys` signed these bytes and the trusted comment; throws otherwise.
    ///
    /// `name` identifies the signed file in errors. A legacy signature (`minisign -S -l`) is refused unless allowed.
    @discardableResult package func verify(
        _ bytes: [UInt8], named name: String, by keys: [PublicKey], allowLegacy: Bool = false
    ) throws -> Verified {
        if !isPrehashed && allowLegacy { return try verify(message: bytes, name, keys) }
        try refuseLegacy(name)
        var hasher = try RunningDigest(.blake2b512)
        try bytes.withUnsafeBytes { try hasher.update($0) }
        return try verify(message: try hasher.finish(), name, keys)
    }

    private func refuseLegacy(_ name: String) throws {
        guard isPrehashed else {
            throw MoultError(
                .legacySignature, .refused, what: "the signature of \(name) is in minisign's legacy format",
                why: "the signature was created by an old minisign, or with minisign -l",
                now: "Sign the file again with minisign 0.10 or later.")
        }
    }

    /// The advice for a file that is signed by an unknown key.
    package static let addKey: Advice = "If that key is the publisher's, add it to the trusted keys."

    private func verify(message: [UInt8], _ name: String, _ keys: [PublicKey]) throws -> Verified {
        let candidates = keys.filter { $0.id == keyID }
        guard !candidates.isEmpty else {
            let ids = keys.map(\.id.description).joined(separator: ", ")
            let trusted =
                keys.isEmpty ? "no key is trusted" : "the trusted key\(keys.count == 1 ? " is" : "s are") \(ids)"
            throw MoultError(
                .unknownKey, .refused, what: "\(name) is not signed by a trusted key",
                why: "its signature is by key \(keyID); \(trusted)",
                now: Self.addKey)
        }
        // Key IDs are public and can collide, so the signature itself is checked.
        let signer = try candidates.first { try Ed25519.verify(bytes, of: message, publicKey: $0.bytes) }
        guard let signer else { throw bad(name, "the file does not match the signature of key \(keyID)") }
        let comment = bytes + unprovenComment.utf8
        guard try Ed25519.verify(commentSignature, of: comment, publicKey: signer.bytes) else {
            throw bad(name, "the trusted comment does not match the signature of key \(keyID)")
        }
        return (signer, unprovenComment)
    }

    private func bad(_ name: String, _ why: String) -> MoultError {
        MoultError(
            .badSignature, .refused, what: "the signature of \(name) is not valid", why: why,
            now:
                "Get the file and its signature again; if the error remains, report it to the publisher and do not use the file."
        )
    }
}
