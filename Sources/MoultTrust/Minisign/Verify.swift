package import MoultBasics

/// The result of verifying a signature.
package struct Verified: Hashable, Sendable {
    /// The key that signed.
    package let key: PublicKey
    package let trustedComment: String
}

extension Signature {
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
        return Verified(key: signer, trustedComment: unprovenComment)
    }

    private func bad(_ name: String, _ why: String) -> MoultError {
        MoultError(
            .badSignature, .refused, what: "the signature of \(name) is not valid", why: why,
            now:
                "Get the file and its signature again; if the error remains, report it to the publisher and do not use the file."
        )
    }
}
