package import MoultBasics
internal import MoultFiles

/// What happened to a store, a line for each transaction. It tells people; nothing is decided by it but whether a saved
/// plan was used already.
package enum History {
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
        package var milliseconds: Int?

        package init(
            time: Timestamp = .now, transaction: String, action: String, from: String?, to: String, outcome: Outcome,
            reason: String? = nil, milliseconds: Int? = nil
        ) {
            self.time = time
            self.transaction = transaction
            self.action = action
            self.from = from
            self.to = to
            self.outcome = outcome
            self.reason = reason
            self.milliseconds = milliseconds
        }

        package var json: JSON {
            .compact([
                "time": .string(time.description), "transaction": .string(transaction), "action": .string(action),
                "from": .optional(from), "to": .string(to), "outcome": .string(outcome.rawValue),
                "reason": .optional(reason), "milliseconds": milliseconds.map { .size($0) },
            ])
        }

        init?(json: JSON) {
            guard let time = json["time"]?.string.flatMap({ Timestamp($0) }), let to = json["to"]?.string,
                let transaction = json["transaction"]?.string, let action = json["action"]?.string,
                let outcome = json["outcome"]?.string.flatMap({ Outcome(rawValue: $0) })
            else { return nil }
            self.init(
                time: time, transaction: transaction, action: action, from: json["from"]?.string, to: to,
                outcome: outcome, reason: json["reason"]?.string,
                milliseconds: json["milliseconds"]?.integer.map { Int($0) })
        }
    }

    /// Adds a line. Not synced: after a power cut a line may be missing, and the store is right without it.
    package static func append(_ entry: Entry, to layout: StoreLayout) throws {
        let file = try Descriptor(layout.history, .append, mode: 0o644)
        let size = try file.facts().size
        var line = entry.json.line + "\n"
        if size > 0 {
            // A crash may have torn the last line; the new one must not be glued to it.
            var last = [UInt8](repeating: 0, count: 1)
            _ = try last.withUnsafeMutableBytes { try file.read(into: $0, at: size - 1) }
            if last[0] != UInt8(ascii: "\n") { line = "\n" + line }
        }
        try file.write(Array(line.utf8))
        try file.close()
    }

    /// The newest entries, oldest first, and how many lines among them could not be read.
    package static func read(_ layout: StoreLayout, newest count: Int = .max) throws -> (entries: [Entry], torn: Int) {
        let reader = try HistoryReader(layout)
        var entries: [Entry] = []
        while entries.count < count, let entry = try reader.next() { entries.append(entry) }
        return (entries.reversed(), reader.torn)
    }
}
