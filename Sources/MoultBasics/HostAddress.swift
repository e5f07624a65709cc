internal import MoultLibc

/// An IP address of a server.
package struct HostAddress: Sendable, Equatable, CustomStringConvertible {
    /// Four or sixteen bytes, in network order.
    package let bytes: [UInt8]

    /// Nil unless these are the bytes of an IPv4 or IPv6 address.
    package init?(_ bytes: [UInt8]) {
        guard [4, 16].contains(bytes.count) else { return nil }
        self.bytes = bytes
    }

    /// Parses the text of an address, as in a URL: `192.0.2.1`, `[2001:db8::1]` or `2001:db8::1`; nil for a name.
    package init?(_ text: String) {
        let isBracketed = text.utf8.first == UInt8(ascii: "[") && text.utf8.last == UInt8(ascii: "]")
        let plain = isBracketed ? String(Substring(text.utf8.dropFirst().dropLast())) : text
        for (family, count) in [(AF_INET, 4), (AF_INET6, 16)] {
            var bytes = [UInt8](repeating: 0, count: count)
            if inet_pton(family, plain, &bytes) == 1 {
                self.bytes = bytes
                return
            }
        }
        return nil
    }

    /// Whether the address is that of this machine, or of a network that the internet does not reach: loopback, private, shared
    /// (RFC 6598), link-local and unspecified addresses. An IPv6 address that contains an IPv4 address is local if that one is.
    package var isLocal: Bool {
        if bytes.count == 4 {
            switch (bytes[0], bytes[1]) {
            // The kernel connects to this machine for 0.0.0.0.
            case (0, _), (10, _), (127, _), (169, 254), (192, 168): return true
            case (100, 64...127), (172, 16...31): return true
            default: return false
            }
        }
        if let embedded { return embedded.isLocal }
        // Loopback and unspecified, unique local fc00::/7, link-local fe80::/10, and site-local fec0::/10.
        return bytes.dropLast().allSatisfy { $0 == 0 } && bytes[15] < 2 || bytes[0] & 0xFE == 0xFC
            || bytes[0] == 0xFE && bytes[1] & 0x80 != 0
    }

    /// The IPv4 address in a mapped (`::ffff:0:0/96`), compatible (`::/96`), translated (`64:ff9b::/96`) or 6to4 (`2002::/16`)
    /// address.
    private var embedded: HostAddress? {
        let prefix = Array(bytes.prefix(12))
        let zeros = [UInt8](repeating: 0, count: 12)
        if prefix == zeros, bytes[12...14].contains(where: { $0 != 0 }) { return HostAddress(Array(bytes[12...])) }
        if prefix == zeros.prefix(10) + [0xFF, 0xFF] || prefix == [0, 0x64, 0xFF, 0x9B] + zeros.prefix(8) {
            return HostAddress(Array(bytes[12...]))
        }
        return bytes[0] == 0x20 && bytes[1] == 0x02 ? HostAddress(Array(bytes[2..<6])) : nil
    }

    package var description: String {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        let family = bytes.count == 4 ? AF_INET : AF_INET6
        // Sixteen or four bytes always fit.
        guard inet_ntop(family, bytes, &text, socklen_t(text.count)) != nil else { return "" }
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
