internal import Moult
internal import MoultBasics
internal import StepKit

extension History.Entry {
    /// The action and its outcome in a few words: `update 2.0.0 -> 2.1.0 done in 1.2 s`.
    var sentence: String { "\(what) \(ending)" }

    /// The action: `update 2.0.0 -> 2.1.0`.
    var what: String {
        let from = self.from.map { Generation.version(of: $0) } ?? "nothing"
        return action + (self.from == to ? "" : " \(from) -> \(Generation.version(of: to))")
    }

    /// The outcome and the duration: `done in 1.2 s`.
    var ending: String {
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

    /// Returns the numbers of carried, rejected, displaced and kept rows, one line per database: `pantry: 3 rows carried over, 1 kept in
    /// quarantine`, followed by the names of the sets in quarantine.
    var rowLines: [String] {
        var names: [String?] = []
        for fate in rows where !names.contains(fate.database) { names.append(fate.database) }
        let lines = names.compactMap { name -> String? in
            let fates = rows.filter { $0.database == name }
            func part(_ count: KeyPath<RowFate, Int>, _ words: String, of noun: String = "row") -> String? {
                let sum = fates.reduce(0) { $0 + $1[keyPath: count] }
                return sum > 0 ? "\(counted(sum, noun)) \(words)" : nil
            }
            let parts = [
                part(\.carried, "carried over"), part(\.rejected, "to \(ReleaseMarker.rejects)"),
                part(\.displaced, "displaced, to \(ReleaseMarker.rejects)", of: "shipped row"),
                part(\.kept, kept.isEmpty ? "kept in the old copy" : "kept in quarantine"),
            ].compactMap(\.self)
            return parts.isEmpty ? nil : (name.map { "\($0): " } ?? "") + parts.joined(separator: ", ")
        }
        return lines + (kept.isEmpty ? [] : ["in quarantine: \(kept.joined(separator: ", "))"])
    }

    /// One line per pass: `prepare: unpack 12 ms, copy 3 ms`.
    var partLines: [String] {
        var passes: [String] = []
        for part in parts where !passes.contains(part.pass) { passes.append(part.pass) }
        return passes.map { pass in
            // Leaves out parts that took almost no time.
            let times = parts.filter { $0.pass == pass && $0.microseconds >= 50 }.map { "\($0.name) \($0.text)" }
            return "\(pass): \(times.isEmpty ? "no time" : times.joined(separator: ", "))"
        }
    }
}

extension History.Part {
    /// The duration, for short parts in tenths of a millisecond, because most would otherwise take 0 ms.
    var text: String {
        let tenths = (microseconds + 50) / 100
        return tenths < 100
            ? "\(tenths / 10).\(tenths % 10) ms" : durationText(seconds: Double(microseconds) / 1_000_000)
    }
}

extension History.Entry.Outcome {
    var style: Style? {
        switch self {
        case .done, .finished: nil
        case .failed, .undone, .cleaned: .warning
        case .stuck: .bad
        }
    }
}
