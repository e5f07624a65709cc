internal import MoultBasics
internal import MoultFiles

/// A minisign secret key, ready to sign.
package struct SecretKey: Sendable {
    package let publicKey: PublicKey
    let seed: [UInt8]
    /// Signs bytes with a key that is elsewhere.
    private let signer: (@Sendable ([UInt8]) throws -> [UInt8])?

    /// Creates a new key pair from random bytes of the system.
    package static func generate() throws -> SecretKey { try SecretKey(id: .generate(), seed: Ed25519.generateSeed()) }

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

// The Base64 line of a secret key file in minisign's format:
//
//      2  "Ed"       signature algorithm
//      2  "Sc" or 0  scrypt, or not protected
//      2  "B2"       checksum algorithm
//     32  salt
//     16  scrypt's two limits, little-endian
//    104  key id, seed, public key, checksum; if protected, XORed with the output of scrypt for the password
extension SecretKey {
    private static let secretSize = KeyID.size + Ed25519.seedSize + Ed25519.publicKeySize + checksumSize
    private static let checksumSize = 32
    private static let saltSize = 32
    private static let fileSize = 6 + saltSize + 16 + secretSize

    /// Returns whether a file looks like a secret key, with or without a password.
    package static func isKey(file bytes: [UInt8]) -> Bool {
        // Any error means that the file is something else.
        guard let text = try? MinisignText(bytes, kind: "secret key", named: "", lines: 2),
            (try? text.comment(line: 0, prefix: MinisignText.untrusted)) != nil
        else { return false }
        return (try? text.bytes(line: 1, count: fileSize))?.starts(with: "Ed".utf8) ?? false
    }

    /// Reads a secret key file (`minisign.key`); asks for the `password` only if the file is protected by one.
    package init(file bytes: [UInt8], named name: String, password: () throws -> [UInt8]) throws {
        let text = try MinisignText(bytes, kind: "secret key", named: name, lines: 2)
        _ = try text.comment(line: 0, prefix: MinisignText.untrusted)
        // Only used to detect a public key, so the error does not matter.
        if (try? PublicKey(file: bytes, named: name)) != nil { throw text.error("it is a public key") }
        let fields = try text.bytes(line: 1, count: Self.fileSize)
        guard fields.starts(with: "Ed".utf8) else { throw text.error("its algorithm is not Ed25519") }
        guard fields[4..<6].elementsEqual("B2".utf8) else { throw text.error("its checksum is not BLAKE2b") }
        var secret = Array(fields.suffix(Self.secretSize))

        let isProtected = fields[2..<4].elementsEqual("Sc".utf8)
        if isProtected {
            let limits = Scrypt(
                operations: Self.number(fields[(6 + Self.saltSize)...]),
                memory: Self.number(fields[(6 + Self.saltSize + 8)...]))
            guard limits.memory <= Scrypt.sensitive.memory, limits.operations <= Scrypt.sensitive.operations else {
                throw text.error("its scrypt limits exceed those of minisign")
            }
            let salt = Array(fields[6..<6 + Self.saltSize])
            let stream = try limits.key(password: try password(), salt: salt, count: Self.secretSize)
            secret = zip(secret, stream).map { $0 ^ $1 }
        } else if !fields[2..<4].elementsEqual([0, 0]) {
            throw text.error("its password protection is not scrypt")
        }

        let id = KeyID(secret[..<8])
        let pair = Array(secret[8..<72])
        let checksum = secret[72...]
        // minisign writes zeros as the checksum of an unprotected key.
        let isWhole =
            checksum.elementsEqual(Self.checksum(id, pair)) || !isProtected && checksum.allSatisfy { $0 == 0 }
        guard isWhole || !isProtected else {
            throw MoultError(
                .password, .refused, what: "cannot open the secret key \(name)", why: "the password is wrong",
                now: "Try again; a forgotten password cannot be recovered.")
        }
        guard isWhole else { throw text.error("its checksum does not match its key") }
        try self.init(id: id, seed: Array(pair[..<32]))
        guard publicKey.bytes.elementsEqual(pair[32...]) else {
            throw text.error("its secret and public halves do not match")
        }
    }

    /// Returns the content of a secret key file in minisign's format, protected by the password if one is given.
    package func file(password: [UInt8]?) throws -> [UInt8] {
        let pair = seed + publicKey.bytes
        var secret = publicKey.id.bytes + pair
        var fields: [UInt8] = Array("Ed".utf8)
        if let password {
            secret += Self.checksum(publicKey.id, pair)
            let salt = try randomBytes(Self.saltSize)
            let stream = try Scrypt.usual.key(password: password, salt: salt, count: Self.secretSize)
            secret = zip(secret, stream).map { $0 ^ $1 }
            fields += Array("ScB2".utf8) + salt
            fields += Self.bytes(Scrypt.usual.operations) + Self.bytes(Scrypt.usual.memory)
        } else {
            secret += [UInt8](repeating: 0, count: Self.checksumSize)
            fields += [0, 0] + Array("B2".utf8) + [UInt8](repeating: 0, count: Self.saltSize + 16)
        }
        let comment = password == nil ? "minisign secret key without a password" : "minisign encrypted secret key"
        return Array("\(MinisignText.untrusted)\(comment)\n\(Base64.encode(fields + secret))\n".utf8)
    }

    private static func checksum(_ id: KeyID, _ pair: [UInt8]) -> [UInt8] {
        BLAKE2b.digest(of: Array("Ed".utf8) + id.bytes + pair, size: checksumSize)
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 {
        bytes.prefix(8).reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }

    private static func bytes(_ number: UInt64) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
    }
}
