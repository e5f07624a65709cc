internal import CCrypto
internal import MoultBasics

/// An incremental digest of libcrypto, either SHA-256 or BLAKE2b-512.
package struct RunningDigest: ~Copyable {
    package enum Function: String { case sha256 = "SHA256", blake2b512 = "BLAKE2B-512" }

    private let context: OpaquePointer
    private let function: Function

    package init(_ function: Function) throws {
        try Library.begin()
        guard let context = EVP_MD_CTX_new() else { throw cryptoError("create a digest") }
        let algorithm = function == .sha256 ? EVP_sha256() : EVP_blake2b512()
        guard EVP_DigestInit_ex(context, algorithm, nil) == 1 else {
            EVP_MD_CTX_free(context)
            throw cryptoError("start \(function.rawValue)")
        }
        self.context = context
        self.function = function
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
        guard EVP_DigestFinal_ex(context, &bytes, &count) == 1 else {
            throw cryptoError("finish \(function.rawValue)")
        }
        return Array(bytes.prefix(Int(count)))
    }
}

/// Initializes libcrypto.
enum Library {
    /// Initializes the library without its configuration file, which could load other code: OPENSSL_CONF is an environment
    /// variable, and a digest must not depend on it. Repeated calls are cheap.
    static func begin() throws {
        let options = UInt64(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT)
        guard OPENSSL_init_crypto(options, nil) == 1 else { throw cryptoError("start") }
    }
}
