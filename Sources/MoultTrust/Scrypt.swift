internal import CCrypto

/// scrypt according to RFC 7914, with its cost given by two limits as in libsodium.
package struct Scrypt: Equatable {
    /// The approximate number of operations, and of bytes of memory.
    package var operations: UInt64
    package var memory: UInt64

    package init(operations: UInt64, memory: UInt64) { (self.operations, self.memory) = (operations, memory) }

    /// The protection of new keys: N = 2^17, r = 8, p = 1, which takes 128 MiB and a few tenths of a second. A key file
    /// contains its limits, so minisign can open these keys as well.
    package static let usual = Scrypt(operations: 4_194_304, memory: 134_217_728)
    /// The protection that minisign uses for its own keys: 1 GiB and a few seconds.
    package static let sensitive = Scrypt(operations: 33_554_432, memory: 1_073_741_824)

    private static let blockFactor: UInt64 = 8

    /// Derives a key of `count` bytes from a password.
    package func key(password: [UInt8], salt: [UInt8], count: Int) throws -> [UInt8] {
        try beginCrypto()
        let (cost, parallel) = parameters
        // The memory limit for libcrypto, whose default of 32 MiB is too low. It uses 128 r bytes for each of N + 2 + p blocks.
        let needed = 128 * Self.blockFactor * (cost + 2 + parallel)
        var key = [UInt8](repeating: 0, count: count)
        let result = password.withUnsafeBytes {
            EVP_PBE_scrypt(
                $0.baseAddress?.assumingMemoryBound(to: CChar.self), password.count, salt, salt.count, cost,
                Self.blockFactor, parallel, needed, &key, count)
        }
        guard result == 1 else {
            throw cryptoError("derive a key from the password with scrypt, which needs \(needed >> 20) MiB of memory")
        }
        return key
    }

    /// N and p for the limits, chosen as in libsodium, so that minisign and moult can open each other's keys.
    private var parameters: (cost: UInt64, parallel: UInt64) {
        let operations = max(operations, 32_768)
        if operations < memory / 32 { return (cost(below: operations / (Self.blockFactor * 4)), 1) }
        let cost = cost(below: memory / (Self.blockFactor * 128))
        return (cost, min(operations / 4 / cost, 0x3fff_ffff) / Self.blockFactor)
    }

    /// Returns the smallest power of two above half of the limit, at least 2.
    private func cost(below limit: UInt64) -> UInt64 {
        var cost: UInt64 = 2
        while cost <= limit / 2 { cost *= 2 }
        return cost
    }
}
