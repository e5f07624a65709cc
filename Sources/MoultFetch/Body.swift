internal import CLinux
internal import MoultLibc

/// The body of a request: text, or a range of the file on descriptor 3, which is read while it is sent.
final class Body {
    private enum Source {
        case bytes([UInt8])
        case file
    }

    private let source: Source
    private var next: Int
    private let end: Int
    /// errno of a failed read.
    private(set) var failure: Int32 = 0

    var size: Int { end - start }
    private let start: Int

    /// Nil if the request has no body.
    init?(_ request: Request) {
        if let text = request.text {
            source = .bytes(Array(text.utf8))
            (start, next, end) = (0, 0, text.utf8.count)
        } else if let part = request.file {
            source = .file
            (start, next, end) = (part.lowerBound, part.lowerBound, part.upperBound)
        } else {
            return nil
        }
    }

    /// Copies the next bytes into the buffer and returns their number: 0 at the end, nil if the file cannot be read.
    func read(into buffer: UnsafeMutableRawBufferPointer) -> Int? {
        let limit = min(buffer.count, end - next)
        guard limit > 0 else { return 0 }
        switch source {
        case .bytes(let bytes):
            bytes.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[next..<next + limit])) }
            next += limit
            return limit
        case .file:
            while true {
                let count = pread(Request.fileNumber, buffer.baseAddress, limit, off_t(next))
                if count < 0, moult_errno() == EINTR { continue }
                guard count > 0 else {
                    failure = count < 0 ? moult_errno() : EIO
                    return nil
                }
                next += count
                return count
            }
        }
    }
}
