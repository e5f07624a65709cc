/// Which key pair a key or a signature belongs to: 8 bytes that say nothing about trust, only where to look.
package struct KeyID: Hashable, Sendable {
    static let size = 8

    let bytes: [UInt8]

    init(_ bytes: some Collection<UInt8>) { self.bytes = Array(bytes) }

    static func generate() throws -> KeyID { KeyID(try randomBytes(size)) }
}

extension KeyID: CustomStringConvertible {
    /// 16 upper-case hexadecimal digits, as minisign prints it: the bytes are a little-endian number.
    package var description: String {
        bytes.reversed().map { byte in
            let digits = String(byte, radix: 16, uppercase: true)
            return byte < 16 ? "0" + digits : digits
        }.joined()
    }
}
