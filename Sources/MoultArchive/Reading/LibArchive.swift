internal import CArchive
internal import MoultBasics
internal import MoultLibc

/// The input of libarchive; stores an error of the source, because it cannot be thrown through C.
final class ArchiveInput {
    let next: () throws -> UnsafeRawBufferPointer
    /// The file, for formats that are read from their end.
    let file: RawFile?
    var error: (any Error)?

    init(_ file: RawFile) { (self.file, next) = (file, { try file.next() }) }
    init(next: @escaping () throws -> UnsafeRawBufferPointer) { (file, self.next) = (nil, next) }
}

/// A libarchive handle that reads one format, without a filter unless it is for a compressed file: it never guesses, and runs no
/// program.
final class LibArchive {
    enum Format {
        case tar, zip, sevenZip
        /// A compressed file, as an archive with a single entry.
        case compressed(ArchiveKind.Compression)
    }

    /// The header of an entry.
    struct Entry {
        enum Kind {
            case file, directory
            case other(String)
        }

        /// Nil if the name is not valid text.
        let name: String?
        let kind: Kind
        let size: Int?
    }

    private let format: Format
    private let handle: OpaquePointer
    // The input must outlive the handle that points to it, so both are stored here.
    private let input: ArchiveInput
    /// The name of the current entry, for errors.
    private var name = ""

    init(_ format: Format, _ input: ArchiveInput) throws {
        guard let handle = archive_read_new() else { throw ArchiveRefusal.library("libarchive cannot start") }
        (self.format, self.handle, self.input) = (format, handle, input)
        switch format {
        case .tar: try check(archive_read_support_format_tar(handle))
        case .zip: try check(archive_read_support_format_zip_seekable(handle))
        case .sevenZip: try check(archive_read_support_format_7zip(handle))
        case .compressed(let compression):
            try check(archive_read_support_format_raw(handle))
            try check(compression.support(handle))
        }
        let context = Unmanaged.passUnretained(input).toOpaque()
        try check(archive_read_set_read_callback(handle, readBlock))
        if input.file != nil { try check(archive_read_set_seek_callback(handle, moveInput)) }
        try check(archive_read_set_callback_data(handle, context))
        try check(archive_read_open1(handle))
        // libarchive would also read a file that is compressed twice, or not at all.
        if case .compressed = format, archive_filter_count(handle) != 2 { throw NotThisFormat() }
    }

    deinit { archive_read_free(handle) }

    /// Returns the next entry; nil at the end of the archive. Throws even for a warning.
    func nextEntry() throws -> Entry? {
        var entry: OpaquePointer?
        let result = archive_read_next_header(handle, &entry)
        if result == ARCHIVE_EOF, input.error == nil { return nil }
        let name = archive_entry_pathname(entry).map { String(cString: $0) }
        self.name = name ?? ""
        if result == ARCHIVE_OK, archive_entry_is_encrypted(entry) != 0 { throw encrypted }
        // libarchive warns about non-ASCII names; the caller refuses them with a better message.
        let isNonASCIIName = result == ARCHIVE_WARN && name?.utf8.allSatisfy { $0 < 0x80 } != true
        if !isNonASCIIName { try check(result) }
        return Entry(
            name: name, kind: Self.kind(of: entry),
            size: archive_entry_size_is_set(entry) == 0 ? nil : Int(archive_entry_size(entry)))
    }

    /// Returns the next piece of the entry's content and its offset, valid until the next call; nil at the end of the entry.
    func nextData() throws -> (offset: Int, bytes: UnsafeRawBufferPointer)? {
        var start: UnsafeRawPointer?
        var count = 0
        var offset: Int64 = 0
        let result = archive_read_data_block(handle, &start, &count, &offset)
        if result == ARCHIVE_EOF, input.error == nil { return nil }
        try check(result)
        return (Int(offset), UnsafeRawBufferPointer(start: start, count: count))
    }

    /// The offset in the input behind everything that was needed for the entries and content so far.
    var bytesUsed: Int { Int(archive_filter_bytes(handle, -1)) }

    private static func kind(of entry: OpaquePointer?) -> Entry.Kind {
        // A hard link has the type of its target.
        if archive_entry_hardlink(entry) != nil { return .other("a hard link") }
        if archive_entry_sparse_count(entry) > 0 { return .other("a sparse file") }
        return switch archive_entry_filetype(entry) {
        case 0o100000: .file
        case 0o040000: .directory
        case 0o120000: .other("a symbolic link")
        case 0o020000, 0o060000: .other("a device")
        case 0o010000: .other("a named pipe")
        case 0o140000: .other("a socket")
        default: .other("of an unknown type")
        }
    }

    private func check(_ result: Int32) throws {
        if let error = input.error { throw error }
        guard result != ARCHIVE_OK else { return }
        let words = archive_error_string(handle).map { printable(String(cString: $0)) } ?? ""
        guard archive_format(handle) == 0 else { throw refusal(words) }
        guard case .compressed = format else { throw NotThisFormat() }
        // The only entry of a compressed file is missing if its content is empty.
        throw words.hasPrefix("Unrecognized archive format") ? ArchiveRefusal.cut : refusal(words)
    }
}

extension LibArchive {
    /// Returns the refusal for an error of libarchive, whose texts tell more than its few codes.
    private func refusal(_ words: String) -> ArchiveRefusal {
        if archive_errno(handle) == ENOMEM || words.contains("memory") { return memory }
        func says(_ parts: String...) -> Bool { parts.contains { words.contains($0) } }
        let shown = printable(name)
        // libarchive has no text for a gzip file that ends in its last checksum.
        if words.isEmpty || says("runcated", "No progress is possible") { return .cut }
        if says("ncrypted", "ncryption", "Crypto codec", "assphrase") { return encrypted }
        if says("symlink", "link entry") {
            return ArchiveRefusal(
                .archiveEntryKind, "its entry \"\(shown)\" is a symbolic link, not a plain file", now: .plainFiles)
        }
        if says("Unsupported ZIP compression method") {
            return ArchiveRefusal(
                .archiveKind, "its entry \"\(shown)\" is compressed by a method that moult does not support",
                now: .deflate)
        }
        if says("bad CRC", "checksum error") {
            return ArchiveRefusal(.archiveDamaged, "the checksum of its entry \"\(shown)\" is wrong")
        }
        if says("wrong size") {
            return ArchiveRefusal(.archiveDamaged, "the content of its entry \"\(shown)\" does not have its size")
        }
        if says("Inconsistent") { return .damaged("an entry does not match its local header") }
        // The first frame or stream was recognized, so this one is behind it.
        if case .compressed(.zstd) = format, says("Unknown frame descriptor") { return trailingZstd }
        if case .compressed(.xz) = format, says("format not recognized") { return .trailingData(of: .xz) }
        if says("Dictionary mismatch") {
            return ArchiveRefusal(
                .archiveDamaged, "it was compressed with a zstd dictionary", now: .withoutDictionary)
        }
        return ArchiveRefusal(
            .archiveDamaged, "libarchive says: \(words.hasSuffix(".") ? String(words.dropLast()) : words)")
    }

    private var encrypted: ArchiveRefusal {
        ArchiveRefusal(.archiveEntryKind, "its entry \"\(printable(name))\" is encrypted", now: .withoutPassword)
    }

    /// The refusal for bytes after the last zstd frame. zstd itself refuses NUL bytes there, so the message names the program that
    /// writes them.
    private var trailingZstd: ArchiveRefusal {
        // If these bytes cannot be read, the message is the general one.
        guard (try? input.file?.bytes(at: bytesUsed, count: 1)) == [0] else { return .trailingData(of: .zstd) }
        return ArchiveRefusal(
            .archiveGarbage,
            "it is padded with NUL bytes after its zstd stream, as bsdtar does when it writes to a pipe",
            now: .withoutPadding)
    }

    private var memory: ArchiveRefusal {
        switch format {
        case .compressed(.xz): .memory("its xz dictionary", now: .smallerDictionary)
        case .compressed(.zstd): .memory("its zstd window", now: .smallerWindow)
        case .sevenZip: .memory("its dictionary", now: .smallerDictionaryIn7z)
        case .tar, .zip, .compressed: .memory("it", now: .again)
        }
    }
}

extension ArchiveKind.Compression {
    /// Makes libarchive decompress this format.
    fileprivate func support(_ handle: OpaquePointer) -> Int32 {
        switch self {
        case .none: ARCHIVE_OK
        case .gzip: archive_read_support_filter_gzip(handle)
        case .bzip2: archive_read_support_filter_bzip2(handle)
        case .xz: archive_read_support_filter_xz(handle)
        case .zstd: archive_read_support_filter_zstd(handle)
        }
    }
}

private func input(_ context: UnsafeMutableRawPointer?) -> ArchiveInput? {
    context.map { Unmanaged<ArchiveInput>.fromOpaque($0).takeUnretainedValue() }
}

/// Passes the next block to libarchive.
private func readBlock(
    _ archive: OpaquePointer?, _ context: UnsafeMutableRawPointer?, _ block: UnsafeMutablePointer<UnsafeRawPointer?>?
) -> Int {
    guard let input = input(context), input.error == nil else { return -1 }
    do {
        let bytes = try input.next()
        block?.pointee = bytes.baseAddress
        return bytes.count
    } catch {
        input.error = error
        return -1
    }
}

/// Moves to another place in the file, as `lseek` does, and returns it.
private func moveInput(
    _ archive: OpaquePointer?, _ context: UnsafeMutableRawPointer?, _ offset: Int64, _ whence: Int32
) -> Int64 {
    guard let file = input(context)?.file else { return Int64(ARCHIVE_FATAL) }
    let start = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? file.position : file.end
    let (place, isTooFar) = start.addingReportingOverflow(Int(offset))
    guard !isTooFar, place >= 0 else { return Int64(ARCHIVE_FATAL) }
    file.position = place
    return Int64(place)
}
