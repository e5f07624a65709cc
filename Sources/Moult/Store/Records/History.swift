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

        package var json: JSON {
            ["pass": .string(pass), "name": .string(name), "microseconds": .size(microseconds)]
        }

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
        /// The durations of the parts.
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
            self.holds = holds
            (self.rows, self.kept) = (rows, kept)
            self.time = time
            self.transaction = transaction
            self.action = action
            self.from = from
            self.to = to
            self.outcome = outcome
            self.reason = reason
            self.remedy = remedy
            self.parts = parts
            self.milliseconds = milliseconds
        }

        package var json: JSON {
            .compact([
                "time": .string(time.description), "transaction": .string(transaction), "action": .string(action),
                "from": .optional(from), "to": .string(to), "outcome": .string(outcome.rawValue),
                "reason": .optional(reason), "remedy": .optional(remedy),
                "milliseconds": milliseconds.map { .size($0) },
                "parts": parts.isEmpty ? nil : .array(parts.map(\.json)),
                "rows": rows.isEmpty ? nil : .array(rows.map(\.json)),
                "kept": kept.isEmpty ? nil : .array(kept.map { .string($0) }),
                "holds": holds.map { .array($0.map(\.json)) },
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
        if end < size {
            try file.close()
            try Files.detach(layout.history)
            let file = try Descriptor(layout.history, .append, mode: 0o644)
            try file.truncate(to: end)
            try file.close()
        } else {
            try file.close()
        }
    }

    /// Returns the newest entries, oldest first, and the number of unreadable lines among them.
    package static func read(_ layout: StoreLayout, newest count: Int = .max) throws -> (entries: [Entry], torn: Int) {
        let reader = try HistoryReader(layout)
        var entries: [Entry] = []
        while entries.count < count, let entry = try reader.next() { entries.append(entry) }
        return (entries.reversed(), reader.torn)
    }
}
