internal import CCrypto
internal import MoultBasics
package import MoultFiles

/// A SHA-256 digest: 32 bytes, compared by value and written as lower-case hexadecimal.
package struct Digest: Hashable, Sendable {
    /// The size of a digest in bytes.
    package static let size = 32

    // Four big-endian words: equality and hashing are synthesized, and nothing is allocated.
    private let words: SIMD4<UInt64>

    /// Creates a digest from its 32 bytes; nil for any other number of bytes.
    package init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count == Self.size else { return nil }
        var words = SIMD4<UInt64>()
        for index in 0..<4 {
            words[index] = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: index * 8, as: UInt64.self))
        }
        self.words = words
    }

    /// Parses 64 hexadecimal digits, upper or lower case; nil for anything else.
    package init?(hex: some StringProtocol) {
        let digits = hex.utf8
        guard digits.count == 2 * Self.size else { return nil }
        var words = SIMD4<UInt64>()
        for (index, digit) in digits.enumerated() {
            guard let value = Character(Unicode.Scalar(digit)).hexDigitValue else { return nil }
            words[index / 16] = words[index / 16] << 4 | UInt64(value)
        }
        self.words = words
    }

    package var bytes: [UInt8] {
        (0..<Self.size).map { (index: Int) -> UInt8 in
            let shift = 56 - index % 8 * 8
            return UInt8(truncatingIfNeeded: words[index / 8] >> shift)
        }
    }

    /// 64 lower-case hexadecimal digits.
    package var hex: String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }

    /// The first 8 hexadecimal digits: enough to distinguish the releases of a product in names.
    package var prefix8: String { String(hex.prefix(8)) }
}

extension Digest: CustomStringConvertible {
    package var description: String { hex }
}

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
    package static func digest(of bytes: [UInt8]) throws -> Digest { try bytes.withUnsafeBytes { try digest(of: $0) } }

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

/// An incremental digest of libcrypto, either SHA-256 or BLAKE2b-512.
package struct RunningDigest: ~Copyable {
    package enum Function: String { case sha256 = "SHA256", blake2b512 = "BLAKE2B-512" }

    private let context: OpaquePointer
    private let function: Function

    package init(_ function: Function) throws {
        try beginCrypto()
        guard let context = EVP_MD_CTX_new() else { throw cryptoError("create a digest") }
        let algorithm = function == .sha256 ? EVP_sha256() : EVP_blake2b512()
        guard EVP_DigestInit_ex(context, algorithm, nil) == 1 else {
            EVP_MD_CTX_free(context)
            throw cryptoError("start \(function.rawValue)")
        }
        (self.context, self.function) = (context, function)
    }

    deinit { EVP_MD_CTX_free(context) }

    package mutating func update(_ bytes: UnsafeRawBufferPointer) throws {
        guard EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) == 1 else {
            throw cryptoError("continue \(function.rawValue)")
        }
    }

    package consuming func finish() throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        guard EVP_DigestFinal_ex(context, &bytes, &count) == 1 else { throw cryptoError("finish \(function.rawValue)") }
        return Array(bytes.prefix(Int(count)))
    }
}

/// Initializes libcrypto without its configuration file, which could load other code: OPENSSL_CONF is an environment
/// variable, and a digest must not depend on it. Repeated calls are cheap.
func beginCrypto() throws {
    let options = UInt64(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT)
    guard OPENSSL_init_crypto(options, nil) == 1 else { throw cryptoError("start") }
}

/// Writes a file and computes the SHA-256 of its content at the same time, so that the file need not be read again.
package final class DigestedFile {
    private let file: Descriptor?
    private let digest = GrowingDigest()
    private var started = 0
    /// The number of bytes written.
    package private(set) var size = 0

    /// Writeback starts after this many bytes, so that the sync at the end is short.
    private static let writeback = 8 << 20

    /// Without a path, only the digest is computed.
    package init(path: String?, mode: UInt32 = 0o600) throws {
        guard let path else {
            file = nil
            return
        }
        let file = try Descriptor(path, .create, mode: mode)
        // A umask may remove this user's own permissions.
        if mode == 0o600 { try file.setMode(mode) }
        self.file = consume file
    }

    package func write(_ bytes: UnsafeRawBufferPointer) throws {
        try digest.update(bytes)
        try file?.write(bytes)
        size += bytes.count
        if size - started >= Self.writeback {
            try file?.startWriteback(at: started, count: size - started)
            started = size
        }
    }

    /// Returns the digest as hexadecimal digits; no more bytes may be written.
    package func finish() throws -> String { try digest.finish() }
}

/// Large enough that system calls cost nothing compared with the digest, small enough to stay in the CPU's L2 cache.
private let blockSize = 256 << 10

/// Passes the blocks of a whole file to `body` in order.
func forEachBlock(of file: borrowing Descriptor, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
    let block = UnsafeMutableRawBufferPointer.allocate(byteCount: blockSize, alignment: 4096)
    defer { block.deallocate() }
    var offset = 0
    while true {
        try LongRead.check(file.path)
        let count = try file.read(into: block, at: offset)
        if count == 0 { return }
        try body(UnsafeRawBufferPointer(rebasing: block[..<count]))
        offset += count
    }
}

/// Returns the error for a failed libcrypto call, with the library's message; empties its error queue.
func cryptoError(_ doing: String) -> MoultError {
    var words: String?
    let number = ERR_get_error()
    if number != 0 {
        var text = [CChar](repeating: 0, count: 256)
        ERR_error_string_n(number, &text, text.count)
        words = String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
    ERR_clear_error()
    return MoultError(.crypto, what: "libcrypto cannot \(doing)", why: words ?? "it gives no reason")
}
