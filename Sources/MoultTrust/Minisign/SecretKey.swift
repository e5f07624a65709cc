internal import MoultBasics
internal import MoultFiles

/// A minisign secret key, ready to sign.
package struct SecretKey: Sendable {
    package let publicKey: PublicKey
    let seed: [UInt8]
    /// Signs bytes with a key that is elsewhere.
    private let signer: (@Sendable ([UInt8]) throws -> [UInt8])?

    /// Creates a new key pair from random bytes of the system.
    package static func generate() throws -> SecretKey {
        try SecretKey(id: .generate(), seed: Ed25519.generateSeed())
    }

    init(id: KeyID, seed: [UInt8]) throws {
        (self.seed, signer) = (seed, nil)
        publicKey = PublicKey(id: id, bytes: try Ed25519.publicKey(ofSeed: seed))
    }

    /// A key that is elsewhere, for instance in a hardware token. `signer` returns the Ed25519 signature of the given bytes.
    package init(elsewhere publicKey: PublicKey, signer: @escaping @Sendable ([UInt8]) throws -> [UInt8]) {
        (self.publicKey, seed, self.signer) = (publicKey, [], signer)
    }

    package var isElsewhere: Bool { signer != nil }

    /// Signs bytes in memory.
    package func sign(_ bytes: [UInt8], trustedComment: String) throws -> Signature {
        var hasher = try RunningDigest(.blake2b512)
        try bytes.withUnsafeBytes { try hasher.update($0) }
        return try sign(digest: try hasher.finish(), trustedComment: trustedComment)
    }

    /// Signs a whole file of any size.
    package func sign(fileAt path: String, trustedComment: String) throws -> Signature {
        try sign(digest: blake2b512(ofFileAt: path), trustedComment: trustedComment)
    }

    private func sign(digest: [UInt8], trustedComment: String) throws -> Signature {
        try MinisignText.check(comment: trustedComment)
        let signature = try made(of: digest)
        return Signature(
            keyID: publicKey.id, isPrehashed: true, bytes: signature, unprovenComment: trustedComment,
            commentSignature: try made(of: signature + trustedComment.utf8))
    }

    private func made(of bytes: [UInt8]) throws -> [UInt8] {
        guard let signer else { return try Ed25519.sign(bytes, seed: seed) }
        let signature = try signer(bytes)
        guard signature.count == Ed25519.signatureSize,
            try Ed25519.verify(signature, of: bytes, publicKey: publicKey.bytes)
        else {
            throw MoultError(
                .badSignature, what: "the command did not sign with key \(publicKey.id)",
                why: signature.count == Ed25519.signatureSize
                    ? "the public key does not verify the signature"
                    : "it printed \(signature.count) bytes, and an Ed25519 signature has \(Ed25519.signatureSize)",
                now: "Specify the public key that belongs to the key of the command.")
        }
        return signature
    }
}

extension SecretKey: CustomStringConvertible {
    /// Names the key without revealing it.
    package var description: String { "secret key \(publicKey.id)" }
}

/// Returns the digest that minisign signs instead of a file's bytes.
package func blake2b512(ofFileAt path: String) throws -> [UInt8] {
    var hasher = try RunningDigest(.blake2b512)
    try forEachBlock(of: Descriptor(path, .read)) { try hasher.update($0) }
    return try hasher.finish()
}
