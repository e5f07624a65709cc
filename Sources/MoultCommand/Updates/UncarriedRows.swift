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
    mutating func otherSets(_ sets: [QuarantineShelf.Set]) {
        for set in sets where !set.hasUncarriedRows { wrapped(StyledText(set.keptText([]))) }
    }
}
