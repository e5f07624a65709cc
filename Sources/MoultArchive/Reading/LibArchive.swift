internal import CArchive
internal import MoultBasics

/// The input of libarchive; stores an error of the source, because it cannot be thrown through C.
final class ArchiveInput {
    let next: () throws -> UnsafeRawBufferPointer
    var error: (any Error)?

    init(next: @escaping () throws -> UnsafeRawBufferPointer) { self.next = next }
}

/// A libarchive handle that reads only tar, without filters: it never decompresses anything or runs a program.
final class LibArchive: EntrySource {
    private let handle: OpaquePointer
    // The feed must outlive the handle that points to it, so both are stored here.
    private let feed: ArchiveInput

    init(feed: ArchiveInput) throws {
        guard let handle = archive_read_new() else {
            throw ArchiveRefusal(.archiveLibrary, "libarchive cannot start", now: nil)
        }
        self.handle = handle
        self.feed = feed
        try check(archive_read_support_format_tar(handle))
        let context = Unmanaged.passUnretained(feed).toOpaque()
        try check(archive_read_open2(handle, context, nil, readBlock, nil, nil))
    }

    deinit { archive_read_free(handle) }

    /// Returns the next entry; nil at the end of the archive. Throws even for a warning.
    func nextEntry() throws -> ArchiveEntry? {
        var entry: OpaquePointer?
        let result = archive_read_next_header(handle, &entry)
        if result == ARCHIVE_EOF, feed.error == nil { return nil }
        let name = archive_entry_pathname(entry).map { String(cString: $0) }
        // libarchive warns about non-ASCII names; the caller refuses them with a better message.
        let isNonASCIIName = result == ARCHIVE_WARN && name?.utf8.allSatisfy { $0 < 0x80 } != true
        if !isNonASCIIName { try check(result) }
        return ArchiveEntry(
            name: name, kind: Self.kind(of: entry),
            size: archive_entry_size_is_set(entry) == 0 ? nil : Int(archive_entry_size(entry)))
    }

    /// Returns the next piece of the entry's content and its offset, valid until the next call; nil at the end of the entry.
    func nextData() throws -> (offset: Int, bytes: UnsafeRawBufferPointer)? {
        var start: UnsafeRawPointer?
        var count = 0
        var offset: Int64 = 0
        let result = archive_read_data_block(handle, &start, &count, &offset)
        if result == ARCHIVE_EOF, feed.error == nil { return nil }
        try check(result)
        return (Int(offset), UnsafeRawBufferPointer(start: start, count: count))
    }

    /// The number of input bytes that the tar reader has used.
    var bytesUsed: Int { Int(archive_filter_bytes(handle, 0)) }

    private static func kind(of entry: OpaquePointer?) -> ArchiveEntry.Kind {
        // A hard link has the type of its target.
        if archive_entry_hardlink(entry) != nil { return .other("a hard link") }
        if archive_entry_sparse_count(entry) > 0 { return .other("a sparse file") }
        if archive_entry_is_encrypted(entry) != 0 { return .other("encrypted") }
        return ArchiveEntry.Kind(mode: Int(archive_entry_filetype(entry)))
    }

    private func check(_ result: Int32) throws {
        if let error = feed.error { throw error }
        guard result != ARCHIVE_OK else { return }
        if archive_format(handle) == 0 { throw NotThisFormat() }
        let words = archive_error_string(handle).map { printable(String(cString: $0)) } ?? "unknown error"
        throw ArchiveRefusal(
            .archiveDamaged, "libarchive says: \(words.hasSuffix(".") ? String(words.dropLast()) : words)")
    }
}

/// Passes the next block to libarchive.
private func readBlock(
    _ archive: OpaquePointer?, _ context: UnsafeMutableRawPointer?, _ block: UnsafeMutablePointer<UnsafeRawPointer?>?
) -> Int {
    guard let context else { return -1 }
    let feed = Unmanaged<ArchiveInput>.fromOpaque(context).takeUnretainedValue()
    guard feed.error == nil else { return -1 }
    do {
        let bytes = try feed.next()
        block?.pointee = bytes.baseAddress
        return bytes.count
    } catch {
        feed.error = error
        return -1
    }
}
