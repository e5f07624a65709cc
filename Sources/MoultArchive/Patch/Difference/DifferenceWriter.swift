/// Encodes a piece of the new file, given its covers, as columns of numbers or bytes of the same kind, which compress best.
struct DifferenceWriter {
    enum Column: Int, CaseIterable {
        /// The number of new bytes before a cover.
        case literals
        case counts
        /// The number of the closest prediction of the shift, and whether that prediction is correct.
        case guesses
        /// The difference between the shift and the prediction, if any.
        case offsets
        /// The lengths of alternating runs of equal and differing bytes in the covers.
        case equal, unequal
        /// The differences from the old bytes.
        case additions
        /// The new bytes.
        case bytes
    }

    /// The bit in `guesses` that is set if the prediction is not correct.
    static let isOff: UInt8 = 8

    private var columns = [[UInt8]](repeating: [], count: Column.allCases.count)

    init(_ covers: [Cover], of piece: UnsafeRawBufferPointer, in old: UnsafeRawBufferPointer, start: Int) {
        var guesses = ShiftGuesses(start: start)
        var equal = 0
        var encodedEnd = 0
        for cover in covers {
            put(cover.literals, .literals)
            put(piece[cover.place - cover.literals..<cover.place])
            put(cover.count, .counts)
            put(cover, &guesses)
            put(cover, piece, old, &equal)
            encodedEnd = cover.place + cover.count
        }
        put(equal, .equal)
        if encodedEnd < piece.count {
            put(piece.count - encodedEnd, .literals)
            put(piece[encodedEnd...])
        }
    }

    /// The number of bytes that are encoded literally.
    var literals: Int { self[.bytes].count }

    /// The sizes of all columns, then the columns.
    var bytes: [UInt8] {
        var all: [UInt8] = []
        for column in columns { Self.put(column.count, to: &all) }
        for column in columns { all += column }
        return all
    }

    private subscript(_ column: Column) -> [UInt8] {
        get { columns[column.rawValue] }
        _modify { yield &columns[column.rawValue] }
    }

    private mutating func put(_ cover: Cover, _ guesses: inout ShiftGuesses) {
        var (best, off) = (0, cover.shift - guesses.guess(0, at: cover.place))
        for number in 1..<ShiftGuesses.count {
            let other = cover.shift - guesses.guess(number, at: cover.place)
            if abs(other) < abs(off) { (best, off) = (number, other) }
        }
        self[.guesses].append(UInt8(best) | (off == 0 ? 0 : Self.isOff))
        // Small positive and negative numbers become small unsigned numbers.
        if off != 0 { put(off << 1 ^ off >> (Int.bitWidth - 1), .offsets) }
        guesses.note(cover.shift, end: cover.place + cover.shift + cover.count)
    }

    private mutating func put(
        _ cover: Cover, _ piece: UnsafeRawBufferPointer, _ old: UnsafeRawBufferPointer, _ equal: inout Int
    ) {
        var place = cover.place
        let end = cover.place + cover.count
        while place < end {
            let same = Self.equal(piece, place, old, place + cover.shift, most: end - place)
            equal += same
            place += same
            if place == end { break }
            let first = place
            while place < end, piece[place] != old[place + cover.shift] { place += 1 }
            put(equal, .equal)
            put(place - first, .unequal)
            for at in first..<place { self[.additions].append(piece[at] &- old[at + cover.shift]) }
            equal = 0
        }
    }

    private static func equal(
        _ one: UnsafeRawBufferPointer, _ place: Int, _ other: UnsafeRawBufferPointer, _ there: Int, most: Int
    ) -> Int {
        var count = 0
        while count + 8 <= most,
            one.loadUnaligned(fromByteOffset: place + count, as: UInt64.self)
                == other.loadUnaligned(fromByteOffset: there + count, as: UInt64.self)
        { count += 8 }
        while count < most, one[place + count] == other[there + count] { count += 1 }
        return count
    }

    private mutating func put(_ bytes: UnsafeRawBufferPointer.SubSequence) { self[.bytes] += bytes }

    private mutating func put(_ number: Int, _ column: Column) { Self.put(number, to: &self[column]) }

    /// Appends a number with seven bits per byte, lowest first.
    private static func put(_ number: Int, to bytes: inout [UInt8]) {
        var rest = UInt(bitPattern: number)
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }
}

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
