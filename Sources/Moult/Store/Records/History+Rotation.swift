internal import MoultArchive
internal import MoultBasics
internal import MoultFiles

/// A long history is closed: it moves to `.moult/history/NUMBER.jsonl` and is then compressed, so that the commands that read the
/// newest lines take the same time after years. Nothing is lost: readers go on with the closed parts.
extension History {
    /// A closed part of the history, a segment.
    struct Segment {
        let number: Int
        /// The path before it is compressed.
        let path: String
        var packed: String { "\(path).zst" }

        /// The path at which the part is now, for messages.
        var place: String { get throws { try Files.facts(path) == nil ? packed : path } }

        /// Returns all lines; throws if the compressed part is damaged.
        func read() throws -> [UInt8] {
            // Until the compressed part is complete, both exist.
            if let bytes = try Files.read(path, limit: History.longestPart) { return bytes }
            guard let bytes = try Files.read(packed, limit: History.longestPart) else {
                throw History.damaged(packed, "it is missing")
            }
            return try SingleFrame.decompress(bytes, limit: History.longestPart, of: packed)
        }

        /// Replaces the part by a compressed file that has been read back.
        fileprivate func pack() throws {
            let bytes = try read()
            let frame = try SingleFrame.compress(bytes)
            guard try SingleFrame.decompress(frame, limit: History.longestPart, of: packed) == bytes else {
                throw History.damaged(packed, "it differs from its content after it was compressed")
            }
            try Files.replace(packed, with: frame)
            guard try Files.read(packed, limit: History.longestPart) == frame else {
                throw History.damaged(packed, "it differs from what was written")
            }
            try Files.remove(path)
        }
    }

    /// The size from which on the history is closed.
    static let rotationSize = 512 << 10
    /// A longer file stays as it is, because it would need too much memory.
    private static let longestPart = 64 << 20

    /// Returns the closed parts, newest first.
    static func parts(_ layout: StoreLayout) throws -> [Segment] {
        let directory = layout.olderHistory
        let numbers = try Files.list(directory).compactMap { name -> Int? in
            guard name.hasSuffix(".jsonl") || name.hasSuffix(".jsonl.zst") else { return nil }
            return Int(name.prefix { $0 != "." })
        }
        return Set(numbers).sorted(by: >).map { Segment(number: $0, path: "\(directory)/\($0).jsonl") }
    }

    /// Closes the history if it is long, and compresses closed parts that a crash has left. Needs the store's lock.
    static func rotate(_ layout: StoreLayout) throws {
        let size = try Files.facts(layout.history)?.size ?? 0
        guard size >= rotationSize, size <= longestPart else { return }
        // Unreadable lines stay where `moult recover` finds them.
        guard try tornLines(layout) == 0 else { return }
        try Files.ensureDirectory(layout.olderHistory)
        let parts = try parts(layout)
        for part in parts where try Files.facts(part.path) != nil { try part.pack() }
        let part = Segment(
            number: (parts.first?.number ?? 0) + 1,
            path: "\(layout.olderHistory)/\((parts.first?.number ?? 0) + 1).jsonl")
        try Files.rename(layout.history, to: part.path)
        // After a power failure, the part is there if the new history is.
        try Files.syncDirectory(layout.olderHistory)
        try Files.syncDirectory(layout.hidden)
        try part.pack()
    }

    /// Moves closed parts that cannot be read out of the way, and returns their new paths. Needs the store's lock.
    static func moveDamagedParts(_ layout: StoreLayout) throws -> [String] {
        try parts(layout).filter { !$0.isReadable }.map { part in
            let moved = try Files.firstFree("\(layout.root)/history-\(Files.name(of: part.place)).damaged")
            try Files.rename(part.place, to: moved)
            return moved
        }
    }
}

extension History.Segment {
    /// Whether the part can be read. The checksum proves that it is what was written, so its lines are not parsed again.
    var isReadable: Bool {
        do { return try !read().isEmpty } catch { return false }
    }
}
