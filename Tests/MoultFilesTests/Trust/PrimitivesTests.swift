import MoultTrust
import Testing

@Suite struct PrimitivesTests {
    /// RFC 7693, appendix A.
    private let abc =
        "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1"
        + "7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923"

    @Test func `both BLAKE2b implementations pass the standard's test vector`() throws {
        #expect(hex(BLAKE2b.digest(of: Array("abc".utf8), size: 64)) == abc)
        var hasher = try RunningDigest(.blake2b512)
        try Array("abc".utf8).withUnsafeBytes { try hasher.update($0) }
        #expect(try hex(hasher.finish()) == abc)
    }

    /// A block has 128 bytes, and BLAKE2b handles the last block separately.
    @Test(arguments: [0, 1, 127, 128, 129, 255, 256, 257, 1_000])
    func `moult's BLAKE2b agrees with that of libcrypto`(count: Int) throws {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
        var hasher = try RunningDigest(.blake2b512)
        try bytes.withUnsafeBytes { try hasher.update($0) }
        #expect(try BLAKE2b.digest(of: bytes, size: 64) == hasher.finish())
    }

    /// From coreutils: printf abc | b2sum -l 256
    @Test func `short BLAKE2b digests are correct`() {
        #expect(
            hex(BLAKE2b.digest(of: Array("abc".utf8), size: 32))
                == "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319")
    }

    /// RFC 4648, section 10.
    @Test(arguments: [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ])
    func `base64 agrees with the examples of RFC 4648`(plain: String, encoded: String) {
        #expect(Base64.encode(Array(plain.utf8)) == encoded)
        #expect(Base64.decode(encoded.utf8) == Array(plain.utf8))
    }

    @Test(arguments: ["Zg", "Zg=", "Zg===", "Zh==", "Zm9v\n", " Zm9v", "Zm9", "Z", "=", "Zg==Zg==", "Zm9-", "Zé=="])
    func `base64 that is not canonical is refused`(text: String) {
        #expect(Base64.decode(text.utf8) == nil)
    }

    /// RFC 8032, section 7.1, test 2.
    @Test func `Ed25519 passes the standard's test vector`() throws {
        let seed = bytes("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
        let key = bytes("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")
        let signature = bytes(
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
                + "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00")
        #expect(try Ed25519.publicKey(ofSeed: seed) == key)
        #expect(try Ed25519.sign([0x72], seed: seed) == signature)
        #expect(try Ed25519.verify(signature, of: [0x72], publicKey: key))
        #expect(try !Ed25519.verify(signature, of: [0x73], publicKey: key))
        #expect(try !Ed25519.verify(Array(signature.dropLast()), of: [0x72], publicKey: key))
    }

    /// RFC 7914, section 12. libsodium chooses N = 16384, r = 8, p = 1 for these limits.
    @Test func `scrypt passes the standard's test vector`() throws {
        let limits = Scrypt(operations: 524_288, memory: 16_777_216)
        let key = try limits.key(password: Array("pleaseletmein".utf8), salt: Array("SodiumChloride".utf8), count: 64)
        #expect(
            hex(key)
                == "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2"
                + "d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887")
    }

    private func hex(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    private func bytes(_ hex: String) -> [UInt8] {
        let digits = hex.compactMap { $0.hexDigitValue.map(UInt8.init) }
        return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }
}
