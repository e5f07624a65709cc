internal import Moult
internal import MoultBasics

/// Output common to several verbs.
extension Page {
    mutating func holds(_ holds: Holds, _ shown: [Hold]? = nil) {
        let shown = shown ?? holds.all
        for hold in shown { wrapped(StyledText(hold.sentence, .warning)) }
        if holds.fault != nil {
            line("rebuild the record with: \(run: ["moult", "recover"], .heading)")
        } else if shown.count > 1 {
            line("remove one with: \(run: ["moult", "unhold", "VERSION"], .heading)")
            line("remove all with: \(run: ["moult", "unhold", "--all"], .heading)")
        } else if let hold = shown.first {
            line("remove the hold with: \(run: ["moult", "unhold", hold.release], .heading)")
        }
    }

    mutating func findings(_ findings: [Finding]) {
        for finding in findings {
            let why = finding.why.map { ": \($0)" } ?? ""
            wrapped(StyledText(finding.description + why, .warning))
            if let advice = finding.advice { wrapped(StyledText(advice)) }
        }
    }

    mutating func advice(of findings: [Finding]) {
        var said: [Advice] = []
        for finding in findings {
            guard let advice = finding.advice, !said.contains(advice) else { continue }
            said.append(advice)
            var names: [String] = []
            for name in findings.filter({ $0.advice == advice }).compactMap(\.database) where !names.contains(name) {
                names.append(name)
            }
            let words =
                advice.isCommand
                ? "repair \(names.joined(separator: ", ")) with: " : "\(names.joined(separator: ", ")): "
            wrapped("\(words)\(StyledText(advice))")
        }
    }

    /// Writes the generations that were removed, and those that could not be removed.
    mutating func collected(_ report: Collector.Report, dry: Bool = false) {
        for name in report.removed {
            wrapped("\("-", .removed) generation \(name)\(dry ? " would be removed" : " was removed")")
        }
        for kept in report.kept { wrapped("\("=", .dim) generation \(kept.generation) stays: \(kept.why)") }
    }

    /// Writes a line for each set of which no warning was shown.
    mutating func otherSets(_ sets: [QuarantineShelf.Set]) {
        for set in sets where !set.hasUncarriedRows { wrapped(StyledText(set.keptText([]))) }
    }
}

extension Holds {
    var json: JSON { .array(all.map(\.json)) }
}

/// Rows of the app that updates have left behind: an operator hears of them also with `-q` and from a timer.
extension Output {
    /// Warns of the sets with such rows; the output adds the store to the command.
    func warnOfRows(in sets: [QuarantineShelf.Set]) {
        for set in sets where set.hasUncarriedRows { warn(set.keptText([])) }
    }
}
