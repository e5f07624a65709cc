internal import CCrypto

/// Ed25519 according to RFC 8032 over messages in memory, using libcrypto.
package enum Ed25519 {
    static let seedSize = 32
    static let publicKeySize = 32
    static let signatureSize = 64

    /// Returns a seed from the system's random number generator.
    package static func generateSeed() throws -> [UInt8] { try randomBytes(seedSize) }

    package static func publicKey(ofSeed seed: [UInt8]) throws -> [UInt8] {
        let key = try Key(seed: seed)
        var bytes = [UInt8](repeating: 0, count: publicKeySize)
        var count = bytes.count
        guard EVP_PKEY_get_raw_public_key(key.handle, &bytes, &count) == 1, count == publicKeySize else {
            throw cryptoError("derive the public key of an Ed25519 key")
        }
        return bytes
    }

    package static func sign(_ message: [UInt8], seed: [UInt8]) throws -> [UInt8] {
        let key = try Key(seed: seed)
        let context = try Context()
        var signature = [UInt8](repeating: 0, count: signatureSize)
        var count = signature.count
        guard EVP_DigestSignInit(context.handle, nil, nil, nil, key.handle) == 1,
            EVP_DigestSign(context.handle, &signature, &count, message, message.count) == 1, count == signatureSize
        else { throw cryptoError("sign with Ed25519") }
        return signature
    }

    /// Returns whether the key's owner made this signature of the message; throws only if the signature cannot be checked.
    package static func verify(_ signature: [UInt8], of message: [UInt8], publicKey: [UInt8]) throws -> Bool {
        let key = try Key(publicKey: publicKey)
        let context = try Context()
        guard EVP_DigestVerifyInit(context.handle, nil, nil, nil, key.handle) == 1 else {
            throw cryptoError("start verifying with Ed25519")
        }
        let result = EVP_DigestVerify(context.handle, signature, signature.count, message, message.count)
        // An invalid signature leaves an error in libcrypto's queue, which the message of a later error must not contain.
        ERR_clear_error()
        return result == 1
    }

    /// Returns whether a public key is a point of small order, or not in the only encoding that RFC 8032 allows. Signatures by
    /// a point of small order are valid for messages that were never signed.
    static func isWeak(publicKey: [UInt8]) -> Bool {
        guard publicKey.count == publicKeySize else { return true }
        // The last bit is the sign of x; the other bits are y, in little-endian order.
        var y = publicKey
        y[31] &= 0x7f
        let prime = [0xed] + [UInt8](repeating: 0xff, count: 30) + [0x7f]
        if !y.reversed().lexicographicallyPrecedes(prime.reversed()) { return true }
        let minusOne = [0xec] + [UInt8](repeating: 0xff, count: 30) + [0x7f]
        let zero = [UInt8](repeating: 0, count: 32)
        let one = [1] + [UInt8](repeating: 0, count: 31)
        // y of the points of order 8, and its negative.
        let eighth: [UInt8] = [
            0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0,
            0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05,
        ]
        let otherEighth: [UInt8] = [
            0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f,
            0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a,
        ]
        return [zero, one, minusOne, eighth, otherEighth].contains(y)
    }

    private struct Key: ~Copyable {
        let handle: OpaquePointer

        init(seed: [UInt8]) throws {
            try beginCrypto()
            guard seed.count == seedSize,
                let handle = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nil, seed, seed.count)
            else { throw cryptoError("load an Ed25519 secret key") }
            self.handle = handle
        }

        init(publicKey: [UInt8]) throws {
            try beginCrypto()
            guard publicKey.count == publicKeySize,
                let handle = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nil, publicKey, publicKey.count)
            else { throw cryptoError("load an Ed25519 public key") }
            self.handle = handle
        }

        deinit { EVP_PKEY_free(handle) }
    }

    private struct Context: ~Copyable {
        let handle: OpaquePointer

        init() throws {
            guard let handle = EVP_MD_CTX_new() else { throw cryptoError("create a signature") }
            self.handle = handle
        }

        deinit { EVP_MD_CTX_free(handle) }
    }
}

/// Returns random bytes from the system, for keys and salts.
func randomBytes(_ count: Int) throws -> [UInt8] {
    try beginCrypto()
    var bytes = [UInt8](repeating: 0, count: count)
    guard RAND_bytes(&bytes, Int32(count)) == 1 else { throw cryptoError("generate random bytes") }
    return bytes
}
