import MoultBasics

package enum Access: Sendable, CaseIterable {
    case readWriteCreate
    case readWrite
    /// Read with locks. **It may still write:** SQLite creates a missing `-wal` and `-shm` of a WAL database.
    case readOnly
    /// Read without locks and without checking for sidecars. Only for a file that does not change while the connection is open.
    case immutable
    /// Read a WAL database through the existing `-shm`, without writing to either file.
    case readOnlySharedMemory

    /// As the connection to which the file is attached: a mode that allows more is an error there. For URIs that are handed out.
    case asOpened

    private var parameters: String {
        switch self {
        case .readWriteCreate: "?mode=rwc"
        case .readWrite: "?mode=rw"
        case .readOnly: "?mode=ro"
        case .immutable: "?mode=ro&immutable=1"
        case .readOnlySharedMemory: "?mode=ro&readonly_shm=1"
        case .asOpened: ""
        }
    }

    /// Returns the `file:` URI that opens exactly this path with this access.
    package func uri(for path: String, extra: String = "") throws -> String {
        guard !path.isEmpty, !path.utf8.contains(0) else {
            throw MoultError(
                .databaseRequest, .usage, what: "cannot open the database: invalid path",
                why: path.isEmpty ? "the path is empty" : "the path contains a NUL character")
        }
        // Without these prefixes, SQLite interprets `//host/x` as an authority and `:memory:` as an in-memory database.
        let prefix = path.utf8.first == UInt8(ascii: "/") ? "file://" : "file:./"
        return prefix + Self.percentEncoded(path) + parameters + extra
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
