/// The bytes that SQLite locks (os_unix.c and wal.c, "Shared-Memory Lock Bytes"); part of its file format.
enum SQLiteLocks {
    /// PENDING and RESERVED: a process writes or is about to.
    static let writing = 0x4000_0000...0x4000_0001
    static let shared = 0x4000_0002...0x4000_01ff
    /// The readers' marks, and the writer's lock.
    static let memory = (123...127, memoryWriting)
    static let memoryWriting = 120...120
}
