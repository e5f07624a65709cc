internal import CLzma
internal import MoultBasics

/// Decompresses xz: any number of consecutive streams, each with its checks.
final class XzDecoder: Decoder {
    private var stream = lzma_stream()
    private var isDone = false

    init() throws {
        let result = lzma_stream_decoder(&stream, UInt64(decoderMemoryLimit), moult_lzma_concatenated)
        guard result == LZMA_OK else { throw ArchiveRefusal(.archiveLibrary, "xz cannot start", now: nil) }
    }

    deinit { lzma_end(&stream) }

    /// True once liblzma has found the end itself; liblzma fails if the input ends elsewhere.
    var mayEnd: Bool { isDone }

    func decode(_ input: inout UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer) throws -> Int {
        if isDone { return 0 }
        // The callers pass the remaining input until none is left: an empty input is the end of the file.
        let action = input.isEmpty ? LZMA_FINISH : LZMA_RUN
        stream.next_in = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
        stream.avail_in = input.count
        stream.next_out = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
        stream.avail_out = output.count
        let result = lzma_code(&stream, action)
        input = UnsafeRawBufferPointer(rebasing: input[(input.count - stream.avail_in)...])
        switch result {
        case LZMA_OK: break
        case LZMA_STREAM_END: isDone = true
        // No input is left, and no output was written: the stream ended too early.
        case LZMA_BUF_ERROR where action == LZMA_FINISH: throw ArchiveRefusal.cut
        case LZMA_BUF_ERROR: break
        case LZMA_MEMLIMIT_ERROR:
            throw ArchiveRefusal.memory("its xz dictionary", now: .smallerDictionary)
        case LZMA_FORMAT_ERROR:
            throw ArchiveRefusal(.archiveGarbage, "unexpected data after the end of its xz stream")
        case LZMA_OPTIONS_ERROR:
            throw ArchiveRefusal(.archiveDamaged, "it uses unsupported xz options")
        case LZMA_DATA_ERROR: throw ArchiveRefusal(.archiveDamaged, "xz says: the data is corrupt")
        default: throw ArchiveRefusal(.archiveLibrary, "xz fails with code \(result.rawValue)", now: nil)
        }
        return output.count - stream.avail_out
    }
}
