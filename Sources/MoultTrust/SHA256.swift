package import MoultFiles

/// An incremental SHA-256 digest: add bytes in order, then `finish` returns the digest.
package struct SHA256: ~Copyable {
    private var hasher: RunningDigest

    package init() throws { hasher = try RunningDigest(.sha256) }

    package mutating func update(_ bytes: UnsafeRawBufferPointer) throws { try hasher.update(bytes) }

    package consuming func finish() throws -> Digest {
        guard let digest = try hasher.finish().withUnsafeBytes(Digest.init) else {
            throw cryptoError("return 32 bytes for SHA-256")
        }
        return digest
    }
}

extension SHA256 {
    /// Returns the digest of bytes in memory.
    package static func digest(of bytes: UnsafeRawBufferPointer) throws -> Digest {
        var hash = try SHA256()
        try hash.update(bytes)
        return try hash.finish()
    }

    /// Returns the digest of bytes in memory.
    package static func digest(of bytes: [UInt8]) throws -> Digest {
        try bytes.withUnsafeBytes { try digest(of: $0) }
    }

    /// Returns the digest of a whole regular file, from its first byte; the descriptor's offset is ignored and unchanged. Never
    /// use it on a database that may be open in this process: closing the descriptor afterwards would drop SQLite's locks.
    /// `stop` is called for each block, and may throw.
    package static func digest(of file: borrowing Descriptor, stop: () throws -> Void = {}) throws -> Digest {
        var hash = try SHA256()
        try forEachBlock(of: file) {
            try stop()
            try hash.update($0)
        }
        return try hash.finish()
    }

    package static func digest(ofFileAt path: String) throws -> Digest { try digest(of: Descriptor(path, .read)) }
}
