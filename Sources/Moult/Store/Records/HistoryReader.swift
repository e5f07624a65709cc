internal import MoultBasics
internal import MoultFiles

/// Reads a history from the end, block by block: after years of updates it is long, and the interesting entries are
/// nearly always among the last lines. The closed parts follow, newest first.
package final class HistoryReader {
    private var path: String
    private let file: Descriptor?
    private var older: [History.Segment]
    private var position = 0
    /// The text that was read but not yet returned. Unless the whole file was read, its first line may be incomplete.
    private var block: ArraySlice<UInt8> = []
    /// The number of unreadable lines so far. A crash may truncate a line, which does no harm to the store.
    package private(set) var torn = 0
    /// The bytes read so far of a line that is too long to be an entry and is not kept in memory; otherwise 0.
    private var skipped = 0

    private static let blockSize = 1 << 16
    /// The maximum length of a line, longer than any entry.
    static let longestLine = 1 << 20
    /// The limit for one line: commands must not read for hours if a file is damaged.
    private static let maxSkipped = 1 << 26

    /// `withOlder`: whether the closed parts are read, too.
    package init(_ layout: StoreLayout, withOlder: Bool = true) throws {
        path = layout.history
        var opened = try Self.open(layout)
        // If another process closes the history in this moment, it is opened again, so that no entry is read twice.
        while withOlder, try opened.facts?.isSameFile(Files.facts(layout.history)) == false {
            opened = try Self.open(layout)
        }
        file = opened.file.take()
        older = withOlder ? opened.older : []
        position = opened.facts?.size ?? 0
    }

    private struct Opened: ~Copyable {
        var file: Descriptor?
        let facts: FileFacts?
        let older: [History.Segment]
    }

    private static func open(_ layout: StoreLayout) throws -> Opened {
        let file = try Descriptor.ifThere(layout.history, .record)
        let facts = try file?.facts()
        if let kind = facts?.kind, kind != .file { throw History.notAFile(layout.history) }
        return Opened(file: file, facts: facts, older: try History.parts(layout))
    }

    package func next() throws -> History.Entry? {
        while let line = try line() {
            if line.isEmpty { continue }
            // A line that is not an entry is counted and reported.
            if let json = try? JSON(parsing: Array(line), source: path), let entry = History.Entry(json: json) {
                return entry
            }
            torn += 1
        }
        return nil
    }

    package func first(where isWanted: (History.Entry) throws -> Bool) throws -> History.Entry? {
        while let entry = try next() { if try isWanted(entry) { return entry } }
        return nil
    }

    /// Returns the holds in the newest entry that has any record of them, among the last `limit` bytes; nil if none has. Few
    /// other lines are parsed.
    func newestHolds(within limit: Int) throws -> [Hold]? {
        var size = 0
        while size < limit, let line = try line() {
            size += line.count
            // A damaged line records no holds.
            guard contains("\"holds\"", in: Array(line)),
                let json = try? JSON(parsing: Array(line), source: path), let holds = History.Entry(json: json)?.holds
            else { continue }
            return holds
        }
        return nil
    }

    private func line() throws -> ArraySlice<UInt8>? {
        while true {
            if let end = lastEnd {
                let line = block[(end + 1)...]
                block = block[..<end]
                if skipped == 0 { return line }
                (skipped, torn) = (0, torn + 1)
                continue
            }
            if position == 0 {
                if skipped > 0 { (skipped, torn, block) = (0, torn + 1, []) }
                if block.isEmpty {
                    guard try openOlder() else { return nil }
                    continue
                }
                defer { block = [] }
                return block
            }
            if skipped > 0 || block.count > Self.longestLine {
                skipped += block.count
                block = []
            }
            try readBefore()
        }
    }

    /// Goes on with the next older part; returns false at the end. A part that cannot be read counts as one line.
    private func openOlder() throws -> Bool {
        if older.isEmpty { return false }
        let part = older.removeFirst()
        path = try part.place
        do { block = try part.read()[...] } catch is MoultError { torn += 1 }
        return true
    }

    /// The position of the last line feed in the block, after which a complete line begins; nil if the block has no line feed.
    private var lastEnd: Int? {
        block.withUnsafeBytes { bytes in
            var end = bytes.count - 1
            while end >= 0, bytes[end] != UInt8(ascii: "\n") { end -= 1 }
            return end < 0 ? nil : block.startIndex + end
        }
    }

    private func readBefore() throws {
        guard skipped <= Self.maxSkipped else { throw History.damaged(path, "one of its lines is longer than 64 MiB") }
        // The block grows each time, because otherwise a long line would be copied again and again.
        let count = min(max(Self.blockSize, block.count), position, Self.longestLine + 1 - block.count)
        var bytes = [UInt8](repeating: 0, count: count)
        var done = 0
        while done < count {
            let more = try bytes.withUnsafeMutableBytes { buffer in
                try file?.read(
                    into: UnsafeMutableRawBufferPointer(rebasing: buffer[done...]), at: position - count + done)
            }
            guard let more, more > 0 else {
                throw MoultError(.store, what: "cannot read \(path)", why: "it was truncated while it was being read")
            }
            done += more
        }
        position -= count
        block = (bytes + block)[...]
    }
}
