internal import MoultFiles

/// A minisign secret key, ready to sign.
package struct SecretKey: Sendable {
    package let publicKey: PublicKey
    let seed: [UInt8]

    /// Creates a new key pair from random bytes of the system.
    package static func generate() throws -> SecretKey {
        try SecretKey(id: .generate(), seed: Ed25519.generateSeed())
    }

    init(id: KeyID, seed: [UInt8]) throws {
        self.seed = seed
        publicKey = PublicKey(id: id, bytes: try Ed25519.publicKey(ofSeed: seed))
    }

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
        let signature = try Ed25519.sign(digest, seed: seed)
        return Signature(
            keyID: publicKey.id, isPrehashed: true, bytes: signature, unprovenComment: trustedComment,
            commentSignature: try Ed25519.sign(signature + trustedComment.utf8, seed: seed))
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
