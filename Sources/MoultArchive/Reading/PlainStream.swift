internal import MoultBasics

/// The decompressed content of a file, block by block, with the number of bytes so far.
final class PlainStream {
    private let raw: () throws -> UnsafeRawBufferPointer
    private let decoder: any Decoder
    private let cut: ArchiveRefusal
    private let block = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 4096)
    private var input = UnsafeRawBufferPointer(start: nil, count: 0)
    private var isRawAtEnd = false

    /// The number of bytes so far, and the number of NUL bytes at their end.
    private(set) var count = 0
    private(set) var zerosAtEnd = 0

    /// Takes the source and its decoder; `cut` is the error if the source ends before the content does.
    init(_ raw: @escaping () throws -> UnsafeRawBufferPointer, decoder: any Decoder, cut: ArchiveRefusal = .cut) {
        self.raw = raw
        self.decoder = decoder
        self.cut = cut
    }

    deinit { block.deallocate() }

    /// Returns the next block, valid until the next call; empty at the end. Throws if the source ends before the content does.
    func next() throws -> UnsafeRawBufferPointer {
        var filled = 0
        while filled < block.count {
            if input.isEmpty && !isRawAtEnd {
                input = try raw()
                isRawAtEnd = input.isEmpty
            }
            let before = input.count
            let more = try decoder.decode(&input, into: UnsafeMutableRawBufferPointer(rebasing: block[filled...]))
            filled += more
            guard more == 0 && input.count == before else { continue }
            guard input.isEmpty else { throw ArchiveRefusal(.archiveDamaged, "its decoder cannot continue") }
            if isRawAtEnd {
                guard decoder.mayEnd else { throw cut }
                break
            }
        }
        let result = UnsafeRawBufferPointer(rebasing: block[..<filled])
        let zeros = Self.zerosAtEnd(of: result)
        zerosAtEnd = zeros == filled ? zerosAtEnd + filled : zeros
        count += filled
        return result
    }

    private static func zerosAtEnd(of bytes: UnsafeRawBufferPointer) -> Int {
        var end = bytes.count
        while end >= 8, bytes.loadUnaligned(fromByteOffset: end - 8, as: UInt64.self) == 0 { end -= 8 }
        while end > 0, bytes[end - 1] == 0 { end -= 1 }
        return bytes.count - end
    }
}
