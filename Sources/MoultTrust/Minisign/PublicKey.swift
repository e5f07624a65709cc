internal import MoultBasics

/// A minisign public key, which verifies signatures made with its secret key.
package struct PublicKey: Hashable, Sendable {
    package let id: KeyID
    /// The 32 bytes of the Ed25519 key.
    let bytes: [UInt8]

    init(id: KeyID, bytes: [UInt8]) { (self.id, self.bytes) = (id, bytes) }

    /// Parses a public key on a single line, in the form that minisign's `-P` option takes and settings files contain.
    package init(base64 line: String, named name: String) throws {
        let text = try MinisignText(Array(line.utf8), kind: "public key", named: name, lines: 1)
        try self.init(line: 0, of: text)
    }

    /// Reads a public key file (`minisign.pub`).
    package init(file bytes: [UInt8], named name: String) throws {
        let text = try MinisignText(bytes, kind: "public key", named: name, lines: 2)
        _ = try text.comment(line: 0, prefix: MinisignText.untrusted)
        try self.init(line: 1, of: text)
    }

    private init(line: Int, of text: MinisignText) throws {
        let bytes = try text.bytes(line: line, count: 2 + KeyID.size + Ed25519.publicKeySize)
        guard bytes.starts(with: "Ed".utf8) else { throw text.error("its algorithm is not Ed25519") }
        let key = Array(bytes[10...])
        // Signatures that such a key accepts can be made without the secret key.
        if Ed25519.isWeak(publicKey: key) {
            throw text.error("it is a weak key, for which anyone can forge signatures")
        }
        self.init(id: KeyID(bytes[2..<10]), bytes: key)
    }

    /// The key as one line of 56 characters.
    package var base64: String { Base64.encode(Array("Ed".utf8) + id.bytes + bytes) }

    /// The content of a public key file in minisign's format.
    package var file: [UInt8] { Array("\(MinisignText.untrusted)minisign public key \(id)\n\(base64)\n".utf8) }
}

extension PublicKey: CustomStringConvertible {
    package var description: String { base64 }
}

/// Identifies the key pair of a key or signature: 8 bytes that only help to find the key and prove nothing.
package struct KeyID: Hashable, Sendable {
    static let size = 8

    let bytes: [UInt8]

    init(_ bytes: some Collection<UInt8>) { self.bytes = Array(bytes) }

    static func generate() throws -> KeyID { KeyID(try randomBytes(size)) }
}

extension KeyID: CustomStringConvertible {
    /// The form that minisign prints: a little-endian number in upper-case hexadecimal digits without leading zeros.
    package var description: String {
        let number = bytes.reversed().reduce(into: UInt64(0)) { number, byte in number = number << 8 | UInt64(byte) }
        return String(number, radix: 16, uppercase: true)
    }
}
