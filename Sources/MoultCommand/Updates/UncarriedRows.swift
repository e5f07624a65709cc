internal import Moult
internal import MoultBasics

/// Rows of the app that updates have left behind: an operator hears of them also with `-q` and from a timer.
extension Output {
    /// Warns of the sets with such rows; the output adds the store to the command.
    func warnOfRows(in sets: [QuarantineShelf.Set]) {
        for set in sets where set.hasUncarriedRows { warn(set.keptText([])) }
    }
}

extension Page {
    /// Writes a line for each set of which no warning was shown.
    mutating func otherSets(_ sets: [QuarantineShelf.Set], _ storeWords: [String]) {
        for set in sets where !set.hasUncarriedRows { wrapped(StyledText(set.keptText(storeWords))) }
    }
}

extension Status {
    /// A sentence for each database with such rows in quarantine.
    var uncarriedRows: [String] {
        var names: [String] = []
        for set in uncarried where !names.contains(set.record?.database ?? "") {
            names.append(set.record?.database ?? "")
        }
        return names.map { name in
            let own = uncarried.filter { $0.record?.database == name }
            let rows = own.flatMap { $0.record?.rows ?? [:] }.reduce(0) { $0 + $1.value }
            let isUncounted = own.contains { $0.record?.rows == nil }
            let what = isUncounted ? "rows" : counted(rows, "row")
            return
                "\(name): \(what) that an update did not carry over \(!isUncounted && rows == 1 ? "is" : "are") in quarantine"
        }
    }
}
