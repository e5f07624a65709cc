import MoultBasics
import MoultTrust
import Testing

@Suite struct KeyFileTests {
    @Test func `two generated keys differ`() throws {
        let (one, two) = (try SecretKey.generate(), try SecretKey.generate())
        #expect(one.publicKey != two.publicKey)
        #expect(one.publicKey.id != two.publicKey.id)
    }

    @Test func `a secret key is not shown when it is printed`() throws {
        let key = try SecretKey.generate()
        #expect("\(key)" == "secret key \(key.publicKey.id)")
        #expect("\(key.publicKey.id)".wholeMatch(of: /[1-9A-F][0-9A-F]{0,15}/) != nil)
    }

    /// minisign prints an ID as a number, and one ID in sixteen starts with the digit 0.
    @Test func `a key ID is printed without leading zeros`() throws {
        let id: [UInt8] = [0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01]
        let line = Base64.encode(Array("Ed".utf8) + id + [UInt8](repeating: 7, count: 32))
        #expect(try "\(PublicKey(base64: line, named: "a key").id)" == "123456789ABCDEF")
    }

    @Test(arguments: [
        ("RWQ=", "line 1 has 2 bytes in Base64 instead of 42"),
        ("AAAA1/2bZSN5Y9aen8RHzeE1wYqNzW2FMVoM+IazPIFE5+0sb+quV9QK", "its algorithm is not Ed25519"),
        ("hello", "line 1 is not Base64"),
        ("", "it has 0 lines instead of 1"),
    ])
    func `invalid public keys are refused`(line: String, why: String) throws {
        let error = try #require(throws: MoultError.self) { try PublicKey(base64: line, named: "keys[0]") }
        #expect(error.what == "keys[0] is not a minisign public key")
        #expect(error.why == why)
    }

    /// Changes a byte of an unprotected key file at each position that matters.
    @Test(arguments: [
        (0, "its algorithm is not Ed25519"),
        (2, "its password protection is not scrypt"),
        (4, "its checksum is not BLAKE2b"),
        (70, "its secret and public halves do not match"),
        (100, "its secret and public halves do not match"),
        (150, "its checksum does not match its key"),
    ])
    func `a damaged secret key is refused`(place: Int, why: String) throws {
        let file = try SecretKey.generate().file(password: nil)
        let lines = String(decoding: file, as: UTF8.self).split(separator: "\n")
        var bytes = try #require(decode(lines[1]))
        bytes[place] ^= 1
        let damaged = Array("\(lines[0])\n\(encode(bytes))\n".utf8)
        let error = try #require(throws: MoultError.self) {
            try SecretKey(file: damaged, named: "k") { [] }
        }
        #expect(error.what == "k is not a minisign secret key")
        #expect(error.why == why)
    }

    @Test func `a public key is refused as a secret key`() throws {
        let file = try SecretKey.generate().publicKey.file
        let error = try #require(throws: MoultError.self) { try SecretKey(file: file, named: "k.pub") { [] } }
        #expect(error.why == "it is a public key")
    }

    /// Only an attacker would use such limits, to exhaust the machine.
    @Test func `excessive scrypt limits are refused`() throws {
        let file = try SecretKey.generate().file(password: nil)
        let lines = String(decoding: file, as: UTF8.self).split(separator: "\n")
        var bytes = try #require(decode(lines[1]))
        bytes.replaceSubrange(2..<4, with: "Sc".utf8)
        bytes[38 + 15] = 1
        let error = try #require(throws: MoultError.self) {
            try SecretKey(file: Array("\(lines[0])\n\(encode(bytes))\n".utf8), named: "k") { [] }
        }
        #expect(error.why == "its scrypt limits exceed those of minisign")
    }

    private let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")

    /// Decodes the line of a key file: 158 bytes are 212 characters, with one `=`.
    private func decode(_ line: Substring) -> [UInt8]? {
        var bits: [Bool] = []
        for character in line where character != "=" {
            guard let value = alphabet.firstIndex(of: character) else { return nil }
            bits += (0..<6).map { value >> (5 - $0) & 1 == 1 }
        }
        return (0..<bits.count / 8).map { byte in bits[byte * 8..<byte * 8 + 8].reduce(0) { $0 << 1 | ($1 ? 1 : 0) } }
    }

    private func encode(_ bytes: [UInt8]) -> String {
        var bits = bytes.flatMap { byte in (0..<8).map { byte >> (7 - $0) & 1 } }
        while bits.count % 6 != 0 { bits.append(0) }
        let text = stride(from: 0, to: bits.count, by: 6).map { start in
            alphabet[bits[start..<start + 6].reduce(0) { $0 << 1 | Int($1) }]
        }
        return String(text) + String(repeating: "=", count: (4 - text.count % 4) % 4)
    }
}
