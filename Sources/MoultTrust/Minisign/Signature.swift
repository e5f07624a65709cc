internal import MoultBasics

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
        self.keyID = keyID
        self.isPrehashed = isPrehashed
        self.bytes = bytes
        self.unprovenComment = unprovenComment
        self.commentSignature = commentSignature
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
        let lines = [
            MinisignText.untrusted + untrustedComment,
            Base64.encode(fields),
            MinisignText.trusted + unprovenComment,
            Base64.encode(commentSignature),
        ]
        return lines.flatMap { Array($0.utf8) + [UInt8(ascii: "\n")] }
    }
}
