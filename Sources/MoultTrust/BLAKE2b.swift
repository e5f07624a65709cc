/// BLAKE2b according to RFC 7693 without a key, for short input and any digest length.
///
/// minisign protects secret keys with a 32-byte BLAKE2b, and libcrypto before 3.2 only supports the 64-byte one. Long
/// input is hashed by libcrypto.
package enum BLAKE2b {
    package static func digest(of bytes: [UInt8], size: Int) -> [UInt8] {
        var state = initial
        state[0] ^= 0x0101_0000 ^ UInt64(size)
        var offset = 0
        while bytes.count - offset > blockSize {
            compress(&state, bytes[offset..<offset + blockSize], counted: offset + blockSize, last: false)
            offset += blockSize
        }
        compress(&state, bytes[offset...], counted: bytes.count, last: true)
        return (0..<size).map { UInt8(truncatingIfNeeded: state[$0 / 8] >> UInt64($0 % 8 * 8)) }
    }

    private static let blockSize = 128

    /// Mixes one block, padded with zeros, into the state.
    private static func compress(_ state: inout [UInt64], _ block: ArraySlice<UInt8>, counted: Int, last: Bool) {
        var message = [UInt64](repeating: 0, count: 16)
        for (index, byte) in block.enumerated() { message[index / 8] |= UInt64(byte) << UInt64(index % 8 * 8) }
        var v = state + initial
        v[12] ^= UInt64(counted)
        if last { v[14] = ~v[14] }
        for round in 0..<12 {
            let order = orders[round % 10]
            for step in 0..<8 {
                // Four columns, then four diagonals.
                let shift = step / 4
                let a = step % 4
                let b = 4 + (step + shift) % 4
                let c = 8 + (step + 2 * shift) % 4
                let d = 12 + (step + 3 * shift) % 4
                mix(&v, a, b, c, d, message[order[2 * step]], message[order[2 * step + 1]])
            }
        }
        for index in 0..<8 { state[index] ^= v[index] ^ v[index + 8] }
    }

    private static func mix(_ v: inout [UInt64], _ a: Int, _ b: Int, _ c: Int, _ d: Int, _ x: UInt64, _ y: UInt64) {
        v[a] = v[a] &+ v[b] &+ x
        v[d] = rotated(v[d] ^ v[a], by: 32)
        v[c] = v[c] &+ v[d]
        v[b] = rotated(v[b] ^ v[c], by: 24)
        v[a] = v[a] &+ v[b] &+ y
        v[d] = rotated(v[d] ^ v[a], by: 16)
        v[c] = v[c] &+ v[d]
        v[b] = rotated(v[b] ^ v[c], by: 63)
    }

    private static func rotated(_ word: UInt64, by count: UInt64) -> UInt64 { word >> count | word << (64 - count) }

    private static let initial: [UInt64] = [
        0x6a09_e667_f3bc_c908, 0xbb67_ae85_84ca_a73b, 0x3c6e_f372_fe94_f82b, 0xa54f_f53a_5f1d_36f1,
        0x510e_527f_ade6_82d1, 0x9b05_688c_2b3e_6c1f, 0x1f83_d9ab_fb41_bd6b, 0x5be0_cd19_137e_2179,
    ]

    /// The order in which each round takes the words of a block.
    private static let orders = [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
        [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
        [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
        [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
        [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
        [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
        [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
        [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
        [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
    ]
}
