internal import CLinux
internal import Glibc
internal import MoultBasics

/// The request, as one JSON object on stdin.
struct Request {
    let url: String
    /// Where to go on; 0 asks for all of it.
    let offset: Int
    /// Resumes only if the server's file still has this tag.
    let ifRange: String?
    /// Wants nothing if the server still has what this tag stands for.
    let ifNoneMatch: String?
    /// Seconds after which a server is given up that does not answer, or is slower than `minimumRate`.
    let patience: Int
    /// Bytes in a second.
    let minimumRate: Int
    /// Seconds for all of it.
    let deadline: Int
    /// Bytes in a second; 0 has no bound.
    let bandwidth: Int

    static func read() throws -> Request {
        var bytes: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 4096)
        while bytes.count < 1 << 16 {
            let count = Glibc.read(STDIN_FILENO, &block, block.count)
            if count < 0, moult_errno() == EINTR { continue }
            if count <= 0 { break }
            bytes += block[..<count]
        }
        let fields = try Fields(JSON(parsing: bytes, source: "stdin")) { place, why, now in
            MoultError(.json, what: "the request: \(place) \(why)", now: now)
        }
        return Request(
            url: try fields.string("url"), offset: try fields.count("offset"),
            ifRange: try fields.optionalString("ifRange"), ifNoneMatch: try fields.optionalString("ifNoneMatch"),
            patience: try fields.count("patience"), minimumRate: try fields.count("minimumRate"),
            deadline: try fields.count("deadline"),
            bandwidth: try fields.count("bandwidth"))
    }
}
