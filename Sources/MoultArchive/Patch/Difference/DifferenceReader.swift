internal import MoultBasics
internal import MoultLibc

/// Reconstructs a piece of the new file from its columns and the old file, without trusting either.
struct DifferenceReader {
    private var columns: [ColumnReader] = []
    private let old: OldBytes
    private var guesses: ShiftGuesses
    /// The remaining bytes of the current runs of equal and of differing bytes.
    private var (equal, unequal) = (0, 0)
    private var isEqualNext = true

    /// The columns must outlive this reader.
    init(_ bytes: UnsafeRawBufferPointer, old: OldBytes, start: Int) throws {
        self.old = old
        guesses = ShiftGuesses(start: start)
        var rest = ColumnReader(bytes)
        let sizes = try DifferenceWriter.Column.allCases.map { _ in try rest.number() }
        columns = try sizes.map { ColumnReader(try rest.take($0)) }
        guard rest.isEmpty else { throw ArchiveRefusal.difference }
    }

    /// Fills the piece, which must be exactly as large as the encoded one.
    mutating func read(into piece: UnsafeMutableRawBufferPointer) throws {
        var place = 0
        while place < piece.count {
            let literals = try number(.literals, most: piece.count - place)
            try copy(take(.bytes, literals), to: piece, place)
            place += literals
            if place == piece.count { break }
            let count = try number(.counts, most: piece.count - place)
            guard count > 0 else { throw ArchiveRefusal.difference }
            let from = try shift(at: place, count) + place
            var done = 0
            while done < count {
                let part = try old.bytes(at: from + done, most: count - done)
                try read(part, into: piece, place + done)
                done += part.count
            }
            place += count
        }
        // The writer always adds a last run of equal bytes, which is empty if the last cover ends with differing bytes.
        if isEqualNext { equal = try number(.equal, most: 0) }
        guard equal == 0, unequal == 0, columns.allSatisfy(\.isEmpty) else { throw ArchiveRefusal.difference }
    }

    private mutating func shift(at place: Int, _ count: Int) throws -> Int {
        guard let entry = try take(.guesses, 1).first else { throw ArchiveRefusal.difference }
        let (number, isOff) = (Int(entry & ~DifferenceWriter.isOff), entry & DifferenceWriter.isOff != 0)
        guard number < ShiftGuesses.count else { throw ArchiveRefusal.difference }
        var shift = guesses.guess(number, at: place)
        if isOff {
            let off = try self.number(.offsets, most: .max)
            shift &+= off >> 1 ^ -(off & 1)
        }
        let from = shift &+ place
        guard from >= 0, from <= old.count - count else { throw ArchiveRefusal.difference }
        guesses.note(shift, end: from + count)
        return shift
    }

    /// Reads a cover: the old bytes, with additions where they differ.
    private mutating func read(
        _ source: UnsafeRawBufferPointer, into piece: UnsafeMutableRawBufferPointer, _ begin: Int
    ) throws {
        var done = 0
        while done < source.count {
            let part: Int
            if equal > 0 {
                part = min(equal, source.count - done)
                copy(UnsafeRawBufferPointer(rebasing: source[done..<done + part]), to: piece, begin + done)
                equal -= part
            } else if unequal > 0 {
                part = min(unequal, source.count - done)
                let additions = try take(.additions, part)
                for at in 0..<part { piece[begin + done + at] = source[done + at] &+ additions[at] }
                unequal -= part
            } else if isEqualNext {
                equal = try number(.equal, most: .max)
                isEqualNext = false
                continue
            } else {
                unequal = try number(.unequal, most: .max)
                // An empty run would make the loop endless.
                guard unequal > 0 else { throw ArchiveRefusal.difference }
                isEqualNext = true
                continue
            }
            done += part
        }
    }

    private func copy(_ bytes: UnsafeRawBufferPointer, to piece: UnsafeMutableRawBufferPointer, _ place: Int) {
        guard let from = bytes.baseAddress, let to = piece.baseAddress else { return }
        memcpy(to + place, from, bytes.count)
    }

    private mutating func number(_ column: DifferenceWriter.Column, most: Int) throws -> Int {
        let number = try columns[column.rawValue].number()
        guard number <= most else { throw ArchiveRefusal.difference }
        return number
    }

    private mutating func take(_ column: DifferenceWriter.Column, _ count: Int) throws -> UnsafeRawBufferPointer {
        try columns[column.rawValue].take(count)
    }

    /// The unread part of a column.
    private struct ColumnReader {
        private var rest: UnsafeRawBufferPointer

        init(_ bytes: UnsafeRawBufferPointer) { rest = bytes }

        var isEmpty: Bool { rest.isEmpty }

        mutating func take(_ count: Int) throws -> UnsafeRawBufferPointer {
            guard count <= rest.count else { throw ArchiveRefusal.difference }
            defer { rest = UnsafeRawBufferPointer(rebasing: rest[count...]) }
            return UnsafeRawBufferPointer(rebasing: rest[..<count])
        }

        /// Returns the next number, which is never negative.
        mutating func number() throws -> Int {
            var (number, shift) = (0, 0)
            while shift < Int.bitWidth - 1 {
                guard let byte = try take(1).first else { break }
                number |= Int(byte & 0x7f) << shift
                if byte < 0x80 { return number }
                shift += 7
            }
            throw ArchiveRefusal.difference
        }
    }
}

extension ArchiveRefusal {
    /// An invalid value in a piece of a patch.
    static let difference = ArchiveRefusal(.archiveDamaged, "one of its pieces is damaged", now: .patchAgain)
}

/// The bytes of the old file of a patch, read in windows of constant size: a file of gigabytes needs no more memory than a small one.
final class OldBytes {
    let count: Int
    private let read: (UnsafeMutableRawBufferPointer, _ offset: Int) throws -> Int
    private let window = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 4096)
    /// The part of the file in the window.
    private var part = 0..<0

    /// Covers that follow each other are often near, but most are short.
    private static let leastRead = 16 << 10

    /// `read` fills the buffer from an offset, and returns the number of bytes.
    init(count: Int, read: @escaping (UnsafeMutableRawBufferPointer, _ offset: Int) throws -> Int) {
        (self.count, self.read) = (count, read)
    }

    deinit { window.deallocate() }

    /// Returns between 1 and `most` bytes, which are valid until the next call.
    func bytes(at offset: Int, most: Int) throws -> UnsafeRawBufferPointer {
        if !part.contains(offset) {
            let size = min(max(most, Self.leastRead), window.count, count - offset)
            let found = try read(UnsafeMutableRawBufferPointer(rebasing: window[..<max(0, size)]), offset)
            // The file has become shorter.
            guard found > 0 else { throw ArchiveRefusal.difference }
            part = offset..<offset + found
        }
        let first = offset - part.lowerBound
        return UnsafeRawBufferPointer(
            rebasing: UnsafeRawBufferPointer(window)[first..<first + min(most, part.upperBound - offset)])
    }
}

extension OldBytes {
    /// The bytes in memory, which must outlive this object.
    convenience init(_ memory: UnsafeRawBufferPointer) {
        self.init(count: memory.count) { target, offset in
            target.copyMemory(from: UnsafeRawBufferPointer(rebasing: memory[offset..<offset + target.count]))
            return target.count
        }
    }
}
