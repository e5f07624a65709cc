internal import Moult
internal import MoultBasics
internal import StepKit

extension History.Entry {
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
