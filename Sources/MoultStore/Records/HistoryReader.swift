internal import MoultBasics
internal import MoultFiles
internal import MoultLibc

/// Reads a history from its end, a block at a time: a store that is updated for years has a long one, and what is asked
/// for is nearly always among the last lines.
package final class HistoryReader {
    private let path: String
    private let file: Descriptor?
    /// The file before this position was not read yet.
    private var position = 0
    /// The text that was read but not returned; it begins with a whole line unless more precedes it.
    private var block: ArraySlice<UInt8> = []
    /// How many lines could not be understood so far: a crash may tear one, and the history decides nothing.
    package private(set) var torn = 0

    private static let blockSize = 1 << 16
    /// No entry is as long.
    private static let longestLine = 1 << 20

    package init(_ layout: StoreLayout) throws {
        path = layout.history
        file = try Descriptor.ifThere(layout.history, .record)
        if let kind = try file?.facts().kind, kind != .file {
            throw MoultError(.store, what: "cannot read \(layout.history)", why: "it is not a regular file")
        }
        if file != nil { position = try file?.facts().size ?? 0 }
    }

    /// The next older entry; nil at the beginning.
    package func next() throws -> History.Entry? {
        while let line = try line() {
            if line.isEmpty { continue }
            // Whatever it is, it is counted and told.
            if let json = try? JSON(parsing: Array(line), source: path), let entry = History.Entry(json: json) {
                return entry
            }
            torn += 1
        }
        return nil
    }

    /// The newest entry of which something is so.
    package func first(where isWanted: (History.Entry) throws -> Bool) throws -> History.Entry? {
        while let entry = try next() { if try isWanted(entry) { return entry } }
        return nil
    }

    /// The newest entry of a transaction, where nothing older than `isOld` says can have it. Lines of others are hardly parsed.
    package func entry(
        of transaction: String, until isOld: (History.Entry) -> Bool, where isWanted: (History.Entry) -> Bool
    ) throws -> History.Entry? {
        let name = Array(transaction.utf8)
        var lines = 0
        while let line = try line() {
            lines += 1
            let names = line.withUnsafeBytes { Self.contains($0, name) }
            guard names || lines % Self.sampled == 0, let json = try? JSON(parsing: Array(line), source: path),
                let entry = History.Entry(json: json)
            else { continue }
            if entry.transaction == transaction, isWanted(entry) { return entry }
            if isOld(entry) { return nil }
        }
        return nil
    }

    private static func contains(_ line: UnsafeRawBufferPointer, _ name: [UInt8]) -> Bool {
        guard let start = line.baseAddress, let first = name.first else { return false }
        var offset = 0
        while line.count - offset >= name.count,
            let found = memchr(start + offset, Int32(first), line.count - offset - name.count + 1)
        {
            if memcmp(found, name, name.count) == 0 { return true }
            offset = start.distance(to: UnsafeRawPointer(found)) + 1
        }
        return false
    }

    /// One line of so many is parsed for its time.
    private static let sampled = 64

    private func line() throws -> ArraySlice<UInt8>? {
        while true {
            if let end = lastEnd {
                let line = block[(end + 1)...]
                block = block[..<end]
                return line
            }
            if position == 0 {
                if block.isEmpty { return nil }
                defer { block = [] }
                return block
            }
            try readBefore()
        }
    }

    /// Where the line before the last one that is known ends.
    private var lastEnd: Int? {
        block.withUnsafeBytes { bytes in
            var end = bytes.count - 1
            while end >= 0, bytes[end] != UInt8(ascii: "\n") { end -= 1 }
            return end < 0 ? nil : block.startIndex + end
        }
    }

    private func readBefore() throws {
        guard block.count <= Self.longestLine else {
            throw MoultError(.store, what: "cannot read \(path)", why: "it has a line of more than 1 MiB")
        }
        // More each time, or a long line would be copied over and over.
        let count = min(max(Self.blockSize, block.count), position, Self.longestLine + 1 - block.count)
        var bytes = [UInt8](repeating: 0, count: count)
        var done = 0
        while done < count {
            let more = try bytes.withUnsafeMutableBytes { buffer in
                try file?.read(
                    into: UnsafeMutableRawBufferPointer(rebasing: buffer[done...]), at: position - count + done)
            }
            guard let more, more > 0 else {
                throw MoultError(.store, what: "cannot read \(path)", why: "it was truncated while it was read")
            }
            done += more
        }
        position -= count
        block = (bytes + block)[...]
    }
}
