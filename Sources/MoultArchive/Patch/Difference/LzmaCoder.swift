internal import CLzma
internal import MoultBasics

/// Raw LZMA for the columns of a patch: without a header, because all properties follow from the size of the content.
struct LzmaCoder {
    private var options = lzma_options_lzma()

    /// The dictionary is as large as the content, so the caller must limit `contentSize`.
    init(contentSize: Int) throws {
        guard lzma_lzma_preset(&options, moult_lzma_extreme) == 0 else {
            throw ArchiveRefusal.library("xz has no such preset")
        }
        options.dict_size = UInt32(max(1 << 12, contentSize))
        // Two bits of the previous byte predict the next one; its position does not.
        (options.lc, options.lp, options.pb) = (2, 0, 0)
    }

    /// Compresses content as far as LZMA can.
    func encode(_ content: [UInt8]) throws -> [UInt8] {
        var count = 0
        // The buffer has space for the maximum growth of incompressible content.
        let packed = [UInt8](unsafeUninitializedCapacity: content.count + content.count / 8 + 1024) { buffer, filled in
            let result = withFilters {
                lzma_raw_buffer_encode($0, nil, content, content.count, buffer.baseAddress, &count, buffer.count)
            }
            if result == LZMA_OK { filled = count }
        }
        guard !packed.isEmpty else { throw ArchiveRefusal.library("xz cannot pack") }
        return packed
    }

    /// Returns exactly `size` bytes of content, or throws.
    func decode(_ packed: [UInt8], size: Int) throws -> [UInt8] {
        var stream = lzma_stream()
        defer { lzma_end(&stream) }
        guard withFilters({ lzma_raw_decoder(&stream, $0) }) == LZMA_OK else {
            throw ArchiveRefusal.library("xz cannot start")
        }
        let plain = packed.withUnsafeBufferPointer { packed in
            [UInt8](unsafeUninitializedCapacity: size) { plain, filled in
                stream.next_in = packed.baseAddress
                stream.avail_in = packed.count
                stream.next_out = plain.baseAddress
                stream.avail_out = size
                // The return code does not matter: only complete output counts, and the caller checks its CRC.
                while stream.avail_out > 0, lzma_code(&stream, LZMA_RUN) == LZMA_OK {}
                filled = size - stream.avail_out
            }
        }
        guard plain.count == size else { throw ArchiveRefusal.difference }
        return plain
    }

    private func withFilters<Result>(_ body: (UnsafePointer<lzma_filter>) -> Result) -> Result {
        var options = options
        return withUnsafeMutablePointer(to: &options) { options in
            body([
                lzma_filter(id: moult_lzma_filter_1, options: options),
                lzma_filter(id: moult_lzma_filter_end, options: nil),
            ])
        }
    }
}
