internal import CZlib

/// Undoes gzip: any number of members one after the other, each with its checksum and length.
final class GzipDecoder: Decoder {
    private var stream = z_stream()
    private(set) var mayEnd = false

    init() throws {
        // 15 bits of window, and gzip's header and trailer around the deflated bytes.
        guard moult_inflate_init(&stream, 15 + 16) == Z_OK else {
            throw Refusal(.archiveLibrary, "zlib cannot start", now: nil)
        }
    }

    deinit { inflateEnd(&stream) }

    func decode(_ input: inout UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer) throws -> Int {
        if mayEnd {
            guard let next = input.first else { return 0 }
            guard next == 0x1f else { throw Refusal.behindEnd(of: "gzip", next: next) }
            guard inflateReset(&stream) == Z_OK else {
                throw Refusal(.archiveLibrary, "zlib cannot go on", now: nil)
            }
            mayEnd = false
        }
        // zlib does not write through next_in.
        stream.next_in = UnsafeMutablePointer(mutating: input.baseAddress?.assumingMemoryBound(to: UInt8.self))
        stream.avail_in = UInt32(input.count)
        stream.next_out = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
        stream.avail_out = UInt32(output.count)
        let result = inflate(&stream, Z_NO_FLUSH)
        input = UnsafeRawBufferPointer(rebasing: input[(input.count - Int(stream.avail_in))...])
        switch result {
        // The last: nothing to do without more input.
        case Z_OK, Z_BUF_ERROR: break
        case Z_STREAM_END: mayEnd = true
        default:
            let why = stream.msg.map { String(cString: $0) } ?? "code \(result)"
            throw Refusal(.archiveDamaged, "gzip says: \(why)")
        }
        return output.count - Int(stream.avail_out)
    }
}
