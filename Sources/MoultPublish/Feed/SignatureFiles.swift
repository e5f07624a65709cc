internal import MoultFiles
internal import MoultTrust
internal import StepKit

enum SignatureFiles {
    static func beside(_ path: String) throws -> [(String, [UInt8])] {
        let (name, directory) = (Files.name(of: path), Files.directory(of: path))
        return try Files.list(directory).filter { $0.hasPrefix("\(name).") && $0.hasSuffix(".minisig") }
            .compactMap { place in try Files.read("\(directory)/\(place)", limit: 1 << 14).map { (place, $0) } }
    }

    /// Returns the signature files next to a file that are signatures. Only these may be published: another user who can write to
    /// the directory may have put a link to a file of this user there.
    static func published(_ path: String) throws -> [(String, [UInt8])] {
        try beside(path).filter { name, bytes in (try? Signature(file: bytes, named: name)) != nil }
    }

    /// Returns whether a signature file next to a feed is for the feed with this digest: the names of early signatures contain
    /// the digest of their feed.
    static func concerns(_ name: String, _ signature: Signature, feed digest: String) -> Bool {
        let parts = name.dropFirst(Feed.fileName.count).split(separator: ".").dropLast()
        guard let first = parts.first else { return true }
        return first == digest.prefix(16) || parts.count == 1 && first == signature.keyID.description
    }

    /// Returns whether a signature does not match these bytes. A signature by an unavailable key cannot be checked, and does
    /// not count as wrong.
    static func isWrong(_ file: (String, [UInt8]), of bytes: [UInt8], by keys: [PublicKey]) -> Bool {
        // A file that cannot be read as a signature counts as wrong.
        guard let signature = try? Signature(file: file.1, named: file.0) else { return true }
        let signers = keys.filter { $0.id == signature.keyID }
        return !signers.isEmpty && (try? signature.verify(bytes, named: file.0, by: signers)) == nil
    }
}
