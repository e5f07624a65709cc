/// Which key pair a key or a signature belongs to: 8 bytes that say nothing about trust, only where to look.
package struct KeyID: Hashable, Sendable {
    static let size = 8

    let bytes: [UInt8]

    init(_ bytes: some Collection<UInt8>) { self.bytes = Array(bytes) }

    static func generate() throws -> KeyID { KeyID(try randomBytes(size)) }
}

extension KeyID: CustomStringConvertible {
    /// As minisign prints it: the bytes are a little-endian number, in upper-case hexadecimal digits without leading zeros.
    package var description: String {
        let number = bytes.reversed().reduce(into: UInt64(0)) { number, byte in number = number << 8 | UInt64(byte) }
        return String(number, radix: 16, uppercase: true)
    }
}
