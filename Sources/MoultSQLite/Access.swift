import MoultBasics

/// How a connection may use a file.
package enum Access: Sendable, CaseIterable {
    /// Reads and writes; makes the file if it is missing.
    case readWriteCreate
    /// Reads and writes a file that exists.
    case readWrite
    /// Reads with locks. **It may still write:** a WAL database gets `-wal` and `-shm` if it has none.
    case readOnly
    /// Reads without locks and without looking for sidecars: only for a file that does not change meanwhile.
    case immutable
    /// Reads a WAL database through the `-shm` that exists, without ever writing it.
    case readOnlySharedMemory

    private var parameters: String {
        switch self {
        case .readWriteCreate: "mode=rwc"
        case .readWrite: "mode=rw"
        case .readOnly: "mode=ro"
        case .immutable: "mode=ro&immutable=1"
        case .readOnlySharedMemory: "mode=ro&readonly_shm=1"
        }
    }

    /// The `file:` URI that opens exactly this path with this access.
    package func uri(for path: String, extra: String = "") throws -> String {
        guard !path.isEmpty, !path.utf8.contains(0) else {
            throw MoultError(
                .databaseRequest, .usage, what: "cannot open a database without a name",
                why: path.isEmpty ? "the path is empty" : "the path has a NUL character")
        }
        // Without the prefixes SQLite takes `//host/x` for an authority and `:memory:` for no file at all.
        let prefix = path.utf8.first == UInt8(ascii: "/") ? "file://" : "file:./"
        return prefix + Self.percentEncoded(path) + "?" + parameters + extra
    }

    private static func percentEncoded(_ path: String) -> String {
        let digits = Array("0123456789ABCDEF".unicodeScalars)
        var encoded = ""
        for byte in path.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"), UInt8(ascii: "/"):
                encoded.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                encoded.append("%")
                encoded.unicodeScalars.append(digits[Int(byte >> 4)])
                encoded.unicodeScalars.append(digits[Int(byte & 15)])
            }
        }
        return encoded
    }
}
