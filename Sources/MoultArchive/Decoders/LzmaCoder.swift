internal import CLzma
internal import Glibc

/// How a stream of a 7z archive, or a piece of a patch, is packed, with the properties that say how much memory it takes.
struct LzmaCoder {
    enum Method { case copy, lzma1, lzma2 }

    private let method: Method
    private let properties: [UInt8]

    /// Refuses properties that ask for too much memory.
    init(method: Method, properties: [UInt8]) throws {
        self.method = method
        self.properties = properties
        guard method != .copy else { return }
        let need = try withFilters { lzma_raw_decoder_memusage($0) }
        guard need <= decoderMemoryLimit else {
            throw Refusal.memory("its LZMA dictionary", now: "Pack it again with 7z -mx=7 or lower.")
        }
    }

    /// Undoes the packing of a short stream whose size is known.
    func decode(_ packed: [UInt8], size: Int) throws -> [UInt8] {
        guard method != .copy else { return packed }
        var stream = lzma_stream()
        defer { lzma_end(&stream) }
        guard try withFilters({ lzma_raw_decoder(&stream, $0) }) == LZMA_OK else {
            throw Refusal(.archiveLibrary, "xz cannot start", now: nil)
        }
        let plain = packed.withUnsafeBufferPointer { packed in
            [UInt8](unsafeUninitializedCapacity: size) { plain, filled in
                stream.next_in = packed.baseAddress
                stream.avail_in = packed.count
                stream.next_out = plain.baseAddress
                stream.avail_out = size
                // Whatever it returns: only a full output counts.
                while stream.avail_out > 0, lzma_code(&stream, LZMA_RUN) == LZMA_OK {}
                filled = size - stream.avail_out
            }
        }
        guard plain.count == size else { throw Refusal.damaged("it cannot be unpacked") }
        return plain
    }

    /// Lends the coder to liblzma in its own form.
    func withFilters<Result>(_ body: (UnsafePointer<lzma_filter>) throws -> Result) throws -> Result {
        var filters = [lzma_filter(), lzma_filter()]
        filters[0].id = method == .lzma1 ? moult_lzma_filter_1 : moult_lzma_filter_2
        filters[1].id = moult_lzma_filter_end
        guard lzma_properties_decode(&filters[0], nil, properties, properties.count) == LZMA_OK else {
            throw Refusal.damaged("its LZMA properties are not valid")
        }
        defer { free(filters[0].options) }
        return try body(filters)
    }
}
