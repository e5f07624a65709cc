internal import CZstd
internal import MoultBasics

/// Decompresses zstd: any number of consecutive frames, including skippable ones.
final class ZstdDecoder: Decoder {
    /// 32 MiB: the largest window that, together with the decoder's other buffers, stays below the limit.
    private static let windowLog: Int32 = 25

    private let stream: OpaquePointer
    private(set) var mayEnd = false

    init() throws {
        guard let stream = ZSTD_createDStream() else {
            throw ArchiveRefusal(.archiveLibrary, "zstd cannot start", now: nil)
        }
        self.stream = stream
        let result = ZSTD_DCtx_setParameter(stream, ZSTD_d_windowLogMax, Self.windowLog)
        guard ZSTD_isError(result) == 0 else { throw Self.refusal(result) }
    }

    deinit { ZSTD_freeDStream(stream) }

    func decode(_ input: inout UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer) throws -> Int {
        if mayEnd {
            guard let next = input.first else { return 0 }
            // A frame starts with 28 b5 2f fd, a skippable frame with 5x 2a 4d 18.
            guard next == 0x28 || next & 0xf0 == 0x50 else { throw Self.trailingData(next: next) }
        }
        var source = ZSTD_inBuffer(src: input.baseAddress, size: input.count, pos: 0)
        var target = ZSTD_outBuffer(dst: output.baseAddress, size: output.count, pos: 0)
        let result = ZSTD_decompressStream(stream, &target, &source)
        guard ZSTD_isError(result) == 0 else { throw Self.refusal(result) }
        input = UnsafeRawBufferPointer(rebasing: input[source.pos...])
        // Zero means that a frame is completely decoded and written to the output.
        mayEnd = result == 0
        return target.pos
    }

    /// Returns the refusal for bytes after the last frame. zstd itself refuses NUL bytes there, so the message names the
    /// program that writes them.
    private static func trailingData(next byte: UInt8) -> ArchiveRefusal {
        guard byte == 0 else { return .trailingData(of: "zstd") }
        return ArchiveRefusal(
            .archiveGarbage,
            "it is padded with NUL bytes after its zstd stream, as bsdtar does when it writes to a pipe",
            now: .withoutPadding)
    }

    private static func refusal(_ result: Int) -> ArchiveRefusal {
        switch ZSTD_getErrorCode(result) {
        case ZSTD_error_frameParameter_windowTooLarge:
            .memory("its zstd window", now: .smallerWindow)
        case ZSTD_error_dictionary_wrong:
            ArchiveRefusal(.archiveDamaged, "it was compressed with a zstd dictionary", now: .withoutDictionary)
        default:
            ArchiveRefusal(.archiveDamaged, "zstd says: \(String(cString: ZSTD_getErrorName(result)))")
        }
    }
}
