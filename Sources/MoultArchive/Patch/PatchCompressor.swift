internal import CZstd
internal import MoultBasics

/// Compresses the pieces of a patch: as differences from the old file if a piece has enough in common with it, otherwise with
/// zstd.
final class PatchCompressor {
    private let context: OpaquePointer
    private let old: OldFile?

    init(_ old: OldFile?) throws {
        guard let context = ZSTD_createCCtx() else {
            throw ArchiveRefusal(.archiveLibrary, "zstd cannot start", now: nil)
        }
        self.context = context
        self.old = old
    }

    deinit { ZSTD_freeCCtx(context) }

    /// Compresses a piece. `near` is the part of the old file that zstd uses.
    func compress(
        _ content: UnsafeRawBufferPointer, of piece: PatchLayout.Piece, behind near: UnsafeRawBufferPointer
    ) throws -> [UInt8] {
        guard let old, !content.isEmpty else { return try zstd(content, behind: near, piece.windowLog) }
        var covers = [Cover(literals: 0, place: 0, count: content.count, shift: piece.offset)]
        if !old.has(content, at: piece.offset) {
            if old.isUnlike(content, start: piece.offset) {
                return try plain(content, piece)
            }
            guard let search = CoverSearch(content, in: old.index) else {
                return try zstd(content, behind: near, piece.windowLog)
            }
            covers = search.covers(start: piece.offset)
        }
        let found = covers.reduce(0) { $0 + $1.count }
        if found < content.count / 8 { return try plain(content, piece) }
        let columns = DifferenceWriter(covers, of: content, in: old.bytes, start: piece.offset)
        let bytes = columns.bytes
        guard bytes.count <= DifferenceFrame.maxColumns else {
            return try zstd(content, behind: near, piece.windowLog)
        }
        let difference = try DifferenceFrame.encode(bytes)
        // For similar content, the difference is always smaller, and trying zstd takes a hundred times as long.
        if columns.literals <= content.count / 4 { return difference }
        let other = try found < content.count / 4 ? plain(content, piece) : zstd(content, behind: near, piece.windowLog)
        return difference.count <= other.count ? difference : other
    }

    /// Compresses content that has little in common with the old file. At the highest level and with a prefix, zstd would take
    /// minutes, and its result would hardly be smaller.
    private func plain(_ content: UnsafeRawBufferPointer, _ piece: PatchLayout.Piece) throws -> [UInt8] {
        try zstd(content, behind: .init(start: nil, count: 0), piece.windowLog, level: 12)
    }

    /// The maximum size of the part of the old file that zstd searches. It limits how long publishers wait.
    private static let maxNear = 16 << 20

    private func zstd(
        _ content: UnsafeRawBufferPointer, behind base: UnsafeRawBufferPointer, _ windowLog: Int32, level: Int32 = 19
    ) throws -> [UInt8] {
        try check(zstd: ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters))
        try set(ZSTD_c_compressionLevel, level)
        try set(ZSTD_c_windowLog, windowLog)
        // With a checksum, the decoder detects a wrong base at once.
        try set(ZSTD_c_checksumFlag, 1)
        // The search always covers the end of the same prefix, so the decoder does not need to know this limit.
        let near = UnsafeRawBufferPointer(rebasing: base.suffix(Self.maxNear))
        try check(zstd: ZSTD_CCtx_refPrefix(context, near.baseAddress, near.count))
        return try [UInt8](unsafeUninitializedCapacity: ZSTD_compressBound(content.count)) { buffer, count in
            let size = ZSTD_compress2(context, buffer.baseAddress, buffer.count, content.baseAddress, content.count)
            try check(zstd: size)
            count = size
        }
    }

    private func set(_ parameter: ZSTD_cParameter, _ value: Int32) throws {
        try check(zstd: ZSTD_CCtx_setParameter(context, parameter, value))
    }
}
