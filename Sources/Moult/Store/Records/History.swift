internal import MoultArchive
package import MoultBasics
internal import MoultFiles
package import StepKit

/// The log of a store, with a line for each transaction. Users read it, and so does moult itself, for example to find out
/// whether a saved plan was applied, or to rebuild damaged records.
package enum History {
    /// The duration of one part of an update: a step in one pass, or the core's work between steps.
    package struct Part: Sendable, Equatable {
        /// `prepare`, `apply` or `undo`.
        package var pass: String
        package var name: String
        package var microseconds: Int

        package init(pass: String, name: String, microseconds: Int) {
            (self.pass, self.name, self.microseconds) = (pass, name, microseconds)
        }

        package var json: JSON { .record(["pass": pass, "name": name, "microseconds": microseconds]) }

        init?(_ json: JSON) {
            guard let pass = json["pass"]?.string, let name = json["name"]?.string,
                let microseconds = json["microseconds"]?.integer
            else { return nil }
            self.init(pass: pass, name: name, microseconds: Int(microseconds))
        }
    }

    package struct Entry: Sendable, Equatable {
        package enum Outcome: String, Sendable, CaseIterable {
            case done, failed, undone, finished, cleaned, stuck
        }
        package var time: Timestamp
        package var transaction: String
        package var action: String
        package var from: String?
        package var to: String
        package var outcome: Outcome
        package var reason: String?
        /// The advice that was shown to the user.
        package var remedy: String?
        package var milliseconds: Int?
        package var parts: [Part]
        /// The fate of rows in tables whose database got new content.
        package var rows: [RowFate]
        /// The names of the quarantine sets with the old content.
        package var kept: [String]
        /// All holds after the transaction, if it changed them, so that a damaged record can be rebuilt.
        package var holds: [Hold]?

        package init(
            time: Timestamp = .now, transaction: String, action: String, from: String?, to: String, outcome: Outcome,
            reason: String? = nil, remedy: String? = nil, milliseconds: Int? = nil, parts: [Part] = [],
            rows: [RowFate] = [], kept: [String] = [], holds: [Hold]? = nil
        ) {
            (self.time, self.transaction, self.action) = (time, transaction, action)
            (self.from, self.to, self.outcome, self.reason) = (from, to, outcome, reason)
            (self.remedy, self.milliseconds, self.parts) = (remedy, milliseconds, parts)
            (self.rows, self.kept, self.holds) = (rows, kept, holds)
        }

        package var json: JSON {
            .record([
                "time": time.description, "transaction": transaction, "action": action, "from": from, "to": to,
                "outcome": outcome.rawValue, "reason": reason, "remedy": remedy, "milliseconds": milliseconds,
                "parts": parts.map(\.json).unlessEmpty, "rows": rows.map(\.json).unlessEmpty, "kept": kept.unlessEmpty,
                "holds": holds.map { $0.map(\.json) },
            ])
        }

        init?(json: JSON) {
            guard let time = json["time"]?.string.flatMap({ Timestamp($0) }), let to = json["to"]?.string,
                let transaction = json["transaction"]?.string, let action = json["action"]?.string,
                let outcome = json["outcome"]?.string.flatMap({ Outcome(rawValue: $0) })
            else { return nil }
            self.init(
                time: time, transaction: transaction, action: action, from: json["from"]?.string, to: to,
                outcome: outcome, reason: json["reason"]?.string, remedy: json["remedy"]?.string,
                milliseconds: json["milliseconds"]?.integer.map { Int($0) },
                parts: (json["parts"]?.array ?? []).compactMap(Part.init),
                rows: (json["rows"]?.array ?? []).compactMap { RowFate(json: $0) },
                kept: (json["kept"]?.array ?? []).compactMap(\.string),
                holds: json["holds"]?.array.map { $0.compactMap { Hold(json: $0) } })
        }
    }

    /// Adds a line. The line is synced only if it contains holds: after a power failure any other line may be missing without
    /// harm to the store.
    package static func append(_ entry: Entry, to layout: StoreLayout) throws {
        if try !isFile(layout) { throw notAFile(layout.history) }
        // In a store that was copied with `cp -al`, the original shares the file.
        try Files.detach(layout.history)
        try dropTornLine(layout)
        // An entry must not be lost because the part before it cannot be closed; the next entry tries again.
        do { try rotate(layout) } catch {}
        let file = try Descriptor(layout.history, .append, mode: 0o644)
        try file.write(Array((entry.json.line + "\n").utf8))
        if entry.holds != nil { try file.sync() }
        try file.close()
    }

    /// Removes an incomplete last line after a crash, so that the next line does not continue it. Needs the store's lock.
    static func dropTornLine(_ layout: StoreLayout) throws {
        guard try isFile(layout), let size = try Files.facts(layout.history)?.size, size > 0 else { return }
        let file = try Descriptor(layout.history, .append, mode: 0o644)
        var end = size
        while end > 0 {
            let count = min(end, 1 << 16)
            var block = [UInt8](repeating: 0, count: count)
            let read = try block.withUnsafeMutableBytes { try file.read(into: $0, at: end - count) }
            guard read == count else {
                throw MoultError(
                    .store, what: "cannot read \(layout.history)", why: "it was truncated while it was being read")
            }
            if let newline = block.lastIndex(of: UInt8(ascii: "\n")) {
                end -= count - newline - 1
                break
            }
            end -= count
        }
        try file.close()
        if end == size { return }
        try Files.detach(layout.history)
        let whole = try Descriptor(layout.history, .append, mode: 0o644)
        try whole.truncate(to: end)
        try whole.close()
    }

    /// Returns the newest entries, oldest first, and the number of unreadable lines among them.
    package static func read(_ layout: StoreLayout, newest count: Int = .max) throws -> (entries: [Entry], torn: Int) {
        let reader = try HistoryReader(layout)
        var entries: [Entry] = []
        while entries.count < count, let entry = try reader.next() { entries.append(entry) }
        return (entries.reversed(), reader.torn)
    }
}

/// A long history is closed: it moves to `.moult/history/NUMBER.jsonl` and is then compressed, so that the commands that read the
/// newest lines take the same time after years. Nothing is lost: readers go on with the closed parts.
extension History {
    struct Segment {
        let number: Int
        let path: String
        var packed: String { "\(path).zst" }
        /// The path at which the part is now, for messages.
        var place: String { get throws { try Files.facts(path) == nil ? packed : path } }

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

        /// The checksum proves that the part is what was written, so its lines are not parsed again.
        var isReadable: Bool { do { return try !read().isEmpty } catch { return false } }
    }

    /// The size from which on the history is closed.
    static let rotationSize = 512 << 10
    /// A longer file stays as it is, because it would need too much memory.
    private static let longestPart = 64 << 20

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
        let number = (parts.first?.number ?? 0) + 1
        let part = Segment(number: number, path: "\(layout.olderHistory)/\(number).jsonl")
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

/// Repairs a history that has unreadable lines, or whose path is occupied by something other than a file. Commands continue
/// without the history, and `moult recover` repairs it.
extension History {
    /// Returns whether the history is a file or missing. A link is refused when it is opened.
    static func isFile(_ layout: StoreLayout) throws -> Bool {
        try Files.facts(layout.history).map { $0.kind == .file || $0.kind == .link } ?? true
    }

    static func notAFile(_ path: String) -> MoultError { damaged(path, "it is not a regular file") }

    static func damaged(_ path: String, _ why: String) -> MoultError {
        MoultError(.store, what: "cannot read \(path)", why: why, now: "Repair the history with: \(moult: "recover")")
    }

    package static func fault(_ layout: StoreLayout) throws -> String? {
        do {
            let torn = try tornLines(layout)
            let lines = torn == 0 ? nil : "\(counted(torn, "line")) cannot be read"
            let parts = try parts(layout).filter { !$0.isReadable }.map { "\(try $0.place) cannot be read" }
            let faults = [lines].compactMap(\.self) + parts
            return faults.isEmpty ? nil : faults.joined(separator: "; ")
        } catch let error as MoultError where error.code == .store { return error.why }
    }

    /// Returns the number of unreadable lines in the part of the history that is not closed. A closed part has none.
    static func tornLines(_ layout: StoreLayout) throws -> Int {
        let reader = try HistoryReader(layout, withOlder: false)
        while try reader.next() != nil {}
        return reader.torn
    }

    /// Moves away anything at the path of the history that is not a file. Needs the store's lock. Returns the new path;
    /// nil if nothing had to be moved.
    package static func moveAway(_ layout: StoreLayout) throws -> String? {
        if try isFile(layout) { return nil }
        let moved = try movedPath(layout)
        try Files.rename(layout.history, to: moved)
        return moved
    }

    /// Writes a new history with the lines that can be read, and keeps the damaged file. Needs the store's lock.
    /// Returns the path of the damaged file; nil if every line can be read.
    static func dropDamagedLines(_ layout: StoreLayout) throws -> String? {
        if try tornLines(layout) == 0 { return nil }
        let moved = try movedPath(layout)
        let new = "\(layout.history).new"
        try Files.remove(new)
        let file = try Descriptor(new, .create, mode: 0o644)
        try file.setMode(0o644)
        try copyLines(of: layout.history, to: file)
        try file.sync()
        try file.close()
        // The readable lines must be available at every moment.
        if try !Files.hardLinkIfPossible(layout.history, at: moved) { try Files.rename(layout.history, to: moved) }
        try Files.rename(new, to: layout.history)
        try Files.syncDirectory(layout.hidden)
        return moved
    }

    private static func movedPath(_ layout: StoreLayout) throws -> String {
        try Files.firstFree("\(layout.root)/\(Files.name(of: layout.history)).damaged")
    }

    /// Copies the readable lines. Reads block by block, because a damaged file may have any size.
    private static func copyLines(of path: String, to new: borrowing Descriptor) throws {
        let file = try Descriptor(path, .record)
        var block = [UInt8](repeating: 0, count: 1 << 16)
        var line: [UInt8] = []
        while case let count = try block.withUnsafeMutableBytes({ try file.read(into: $0) }), count > 0 {
            var rest = block[..<count]
            while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                line += rest[..<end]
                rest = rest[(end + 1)...]
                if isEntry(line) { try new.write(line + [UInt8(ascii: "\n")]) }
                line.removeAll(keepingCapacity: true)
            }
            // No entry is this long, so the rest of the line is dropped.
            if line.count <= HistoryReader.longestLine { line += rest }
        }
    }

    private static func isEntry(_ line: [UInt8]) -> Bool {
        guard line.count <= HistoryReader.longestLine else { return false }
        // The reason why the line cannot be read does not matter.
        return (try? JSON(parsing: line, source: "")).map { Entry(json: $0) != nil } ?? false
    }
}

extension History.Entry {
    /// The action and its outcome in a few words: `update 2.0.0 -> 2.1.0 done in 1.2 s`.
    package var sentence: String { "\(what) \(ending)" }

    package var what: String {
        let from = self.from.map { Generation.version(of: $0) } ?? "nothing"
        return action + (self.from == to ? "" : " \(from) -> \(Generation.version(of: to))")
    }

    package var ending: String {
        let time = milliseconds.map { durationText(seconds: Double($0) / 1000) }
        func after(_ words: String) -> String { words + (time.map { " after \($0)" } ?? "") }
        return switch outcome {
        case .done: "done" + (time.map { " in \($0)" } ?? "")
        case .failed: after("failed")
        case .undone: after("failed and undone")
        case .stuck: "failed, and not undone" + (time.map { ", after \($0)" } ?? "")
        case .finished: "finished after an interruption"
        case .cleaned: "interrupted"
        }
    }
}
