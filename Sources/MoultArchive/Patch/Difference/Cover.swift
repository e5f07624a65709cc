/// A part of a piece of the new file that is identical or nearly identical to a part of the old file.
struct Cover: Hashable {
    /// The number of new bytes before this part.
    let literals: Int
    /// The position of this part in the piece.
    let place: Int
    let count: Int
    /// The amount to add to a position in the piece to get the position in the old file.
    let shift: Int
}

/// Predicts the next shift. The writer and the reader of a patch make the same predictions.
///
/// In a database that changed in place, a shift often equals an earlier one, or continues in the old file where an earlier
/// cover ended.
struct ShiftGuesses {
    static let count = 5

    private var recent: (Int, Int, Int)
    /// The positions in the old file where the last two covers ended.
    private var ends: (Int, Int)

    init(start: Int) {
        recent = (start, start, start)
        ends = (start, start)
    }

    func guess(_ number: Int, at place: Int) -> Int {
        switch number {
        case 0: recent.0
        case 1: recent.1
        case 2: recent.2
        case 3: ends.0 &- place
        default: ends.1 &- place
        }
    }

    mutating func note(_ shift: Int, end: Int) {
        ends = (end, ends.0)
        if shift == recent.0 { return }
        recent = shift == recent.1 ? (shift, recent.0, recent.2) : (shift, recent.0, recent.1)
    }
}
