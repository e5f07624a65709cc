internal import CZlib
internal import MoultBasics

/// Decompresses deflate: a single stream without a header, or any number of consecutive gzip members, each with its
/// checksum.
///
/// NUL bytes may follow the last gzip member up to the end of the file, as in the output of bsdtar to a pipe; gzip
/// ignores them as well.
final class DeflateDecoder: Decoder {
    private static let maxPadding = 1 << 20

    private let form: DeflateEncoder.Form
    private var stream = z_stream()
    private(set) var mayEnd = false
    /// The number of NUL bytes after the last gzip member.
    private var padding = 0

    init(_ form: DeflateEncoder.Form) throws {
        self.form = form
        guard moult_inflate_init(&stream, form.rawValue) == Z_OK else {
            throw ArchiveRefusal(.archiveLibrary, "zlib cannot start", now: nil)
        }
    }

    deinit { inflateEnd(&stream) }

    func decode(_ input: inout UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer) throws -> Int {
        if mayEnd {
            guard let next = input.first else { return 0 }
            guard form == .gzip, next == 0x1f, padding == 0 else {
                try skipPadding(&input)
                return 0
            }
            guard inflateReset(&stream) == Z_OK else {
                throw ArchiveRefusal(.archiveLibrary, "zlib cannot continue", now: nil)
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
        // Z_BUF_ERROR means that zlib needs more input.
        case Z_OK, Z_BUF_ERROR: break
        case Z_STREAM_END: mayEnd = true
        default:
            let why = stream.msg.map { String(cString: $0) } ?? "code \(result)"
            throw ArchiveRefusal(.archiveDamaged, "\(form == .gzip ? "gzip" : "deflate") says: \(why)")
        }
        return output.count - Int(stream.avail_out)
    }

    private func skipPadding(_ input: inout UnsafeRawBufferPointer) throws {
        guard form == .gzip, input.allSatisfy({ $0 == 0 }) else {
            throw ArchiveRefusal.trailingData(of: form == .gzip ? "gzip" : "deflate")
        }
        padding += input.count
        guard padding <= Self.maxPadding else {
            throw ArchiveRefusal(
                .archiveGarbage, "more than 1 MiB of NUL bytes after the end of its gzip stream")
        }
        input = UnsafeRawBufferPointer(rebasing: input[input.endIndex...])
    }
}
