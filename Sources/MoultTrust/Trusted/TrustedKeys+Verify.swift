package import MoultBasics

extension TrustedKeys {
    /// Returns the possible names of the signature files for a file: minisign's usual name, and one with the ID of each key.
    package func signatureNames(of name: String) -> [String] {
        ["\(name).minisig"] + entries.map { Self.signatureName(of: name, by: $0.key.id) }
    }

    /// Returns the name of the signature file of one signer, for a file with several signers.
    package static func signatureName(of name: String, by id: KeyID) -> String { "\(name).\(id).minisig" }

    /// Verifies that enough of these keys signed the bytes, and returns the signers; nothing is parsed before that.
    ///
    /// `find` gets the name of a signature file and returns its bytes, nil if it does not exist.
    package func verify(
        _ bytes: [UInt8], named name: String, at now: Timestamp = .now, find: (String) throws -> [UInt8]?
    ) throws -> [KeyID] {
        // A key counts once, whatever IDs its signatures have.
        var signers: [PublicKey] = []
        var fault: MoultError?
        for place in signatureNames(of: name) {
            guard let file = try find(place) else { continue }
            do {
                let signer = try signer(of: bytes, named: name, signature: Signature(file: file, named: place), now)
                if !signers.contains(where: { $0.bytes == signer.bytes }) { signers.append(signer) }
            } catch let error as MoultError { fault = fault ?? error }
            if signers.count >= threshold { return signers.map(\.id) }
        }
        // An error about an invalid signature is more useful than one about missing signatures.
        throw fault ?? unsigned(name, signers.map(\.id))
    }

    private func signer(
        of bytes: [UInt8], named name: String, signature: Signature, _ now: Timestamp
    ) throws -> PublicKey {
        let signer = try signature.verify(bytes, named: name, by: entries.map(\.key)).key
        if let until = entries.first(where: { $0.key == signer })?.notAfter, until < now {
            throw MoultError(
                .expiredKey, .refused, what: "\(name) is signed by a key that is no longer trusted",
                why: "key \(signer.id) was trusted until \(until)",
                now: "Ask the publisher for a file that is signed by the current key.")
        }
        return signer
    }

    private func unsigned(_ name: String, _ signers: [KeyID]) -> MoultError {
        let trusted =
            "the trusted key\(entries.count == 1 ? " is" : "s are") \(ids)"
        return MoultError(
            .unsigned, .refused,
            what: signers.isEmpty ? "\(name) is not signed" : "\(name) has too few signatures",
            why: threshold == 1
                ? "this store accepts only files signed by a trusted key, and \(name).minisig does not exist; \(trusted)"
                : "this store requires \(threshold) signatures, and the file has \(signers.isEmpty ? "none" : "only those of " + signers.map(\.description).joined(separator: ", ")); \(trusted)",
            now: name.contains("://")
                ? "Ask the publisher to sign the file and to upload the signature."
                : "Get the signature from the publisher, and put it next to the file.")
    }
}
