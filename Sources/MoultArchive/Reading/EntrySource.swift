/// The header of an entry in an archive.
struct ArchiveEntry {
    enum Kind {
        case file, directory
        case other(String)

        /// Determines the kind from a Unix mode.
        init(mode: Int) {
            self =
                switch mode & 0o170000 {
                case 0o100000: .file
                case 0o040000: .directory
                case 0o120000: .other("a symbolic link")
                case 0o020000, 0o060000: .other("a device")
                case 0o010000: .other("a named pipe")
                case 0o140000: .other("a socket")
                default: .other("of an unknown type")
                }
        }
    }

    /// Nil if the name is not valid text.
    let name: String?
    let kind: Kind
    let size: Int?
}

/// A source of the entries of an archive, one after the other.
protocol EntrySource {
    /// Returns the next entry; nil at the end of the archive.
    func nextEntry() throws -> ArchiveEntry?

    /// Returns the next piece of the entry's content and its offset, valid until the next call; nil at the end of the entry.
    func nextData() throws -> (offset: Int, bytes: UnsafeRawBufferPointer)?
}
