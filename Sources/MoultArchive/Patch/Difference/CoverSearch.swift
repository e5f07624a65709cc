/// Finds the parts that a piece of the new file has in common with the old file.
///
/// The search follows the old file as long as enough bytes match, even across short differences, and looks elsewhere if too few
/// match.
struct CoverSearch {
    private let old: OldContent
    private let new: UnsafeRawPointer
    private let count: Int
    private let source: UnsafeRawPointer
    private let sourceCount: Int

    private struct Match {
        let place: Int
        let shift: Int
        let count: Int
    }

    /// A shorter match costs more to encode than it saves.
    private static let minLength = 16
    /// The number of further bytes in which a better match is searched for.
    private static let patience = 8
    /// A match of this length is accepted at once.
    private static let plenty = 512

    /// Nil if the piece or the old file is empty.
    init?(_ piece: UnsafeRawBufferPointer, in old: OldContent) {
        guard let new = piece.baseAddress, let source = old.bytes.baseAddress else { return nil }
        (self.old, self.new, self.source) = (old, new, source)
        (count, sourceCount) = (piece.count, old.bytes.count)
    }

    /// Returns the covers in order; the bytes after the last one are new. `start` is the most likely shift at the beginning.
    func covers(start: Int) -> [Cover] {
        var covers: [Cover] = []
        var shift = agrees(at: 0, start) ? start : nil
        // The start of the current cover, the position up to which it agrees, and the end of the previous cover.
        var (begin, place, encodedEnd) = (0, 0, 0)
        while true {
            if let shift { place += equal(place, shift) }
            let next = match(from: place, shift)
            if let next, let shift, next.shift == shift, isOneCover(place..<next.place, shift) {
                place = next.place
                continue
            }
            let limit = next?.place ?? count
            var end = shift.map { extended(place..<limit, $0) } ?? place
            var following = next.map { extendedBack(place..<limit, $0.shift) } ?? count
            if let shift, let next, end > following {
                end = border(following..<end, shift, next.shift)
                following = end
            }
            if let shift, end > begin {
                covers.append(Cover(literals: begin - encodedEnd, place: begin, count: end - begin, shift: shift))
                encodedEnd = end
            }
            guard let next else { return covers }
            (begin, place, shift) = (following, next.place, next.shift)
        }
    }

    /// Returns the next part that matches the old file, with the same shift or elsewhere; nil if no further part matches.
    private func match(from end: Int, _ shift: Int?) -> Match? {
        var best: Match?
        var stop = count
        var place = end
        while place < stop {
            if let shift, agrees(at: place, shift) {
                let length = equal(place, shift)
                if length + 8 >= best?.count ?? 0 { return Match(place: place, shift: shift, count: length) }
            }
            if place + OldContent.width <= count {
                let isFirst = best == nil
                old.forEachPlace(like: new + place) { consider(at: $0, place, end, shift, &best) }
                if isFirst, best != nil { stop = min(stop, place + Self.patience) }
            }
            if let best, best.count >= Self.plenty { return best }
            place += 1
        }
        return best
    }

    /// Keeps a position in the old file if it matches more bytes than the best one so far.
    @inline(__always)
    private func consider(at there: Int, _ place: Int, _ end: Int, _ shift: Int?, _ best: inout Match?) {
        guard word(source, there) == word(new, place) else { return }
        let other = there - place
        let ahead = equal(place, other)
        guard ahead >= OldContent.width else { return }
        var behind = 0
        let maxBehind = min(place - end, there)
        while behind < maxBehind, byte(new, place - behind - 1) == byte(source, there - behind - 1) { behind += 1 }
        let length = ahead + behind
        guard length >= Self.minLength else { return }
        let first = place - behind
        if let shift, !isClearlyBetter(first..<first + min(length, 256), than: shift) { return }
        if let known = best {
            guard
                length > known.count
                    || length == known.count && distance(other, shift) < distance(known.shift, shift)
            else { return }
        }
        best = Match(place: first, shift: other, count: length)
    }

    private func distance(_ one: Int, _ other: Int?) -> Int { abs(one - (other ?? 0)) }

    private func isClearlyBetter(_ part: Range<Int>, than shift: Int) -> Bool { agreeing(part, shift) + 8 < part.count }

    /// Returns whether the bytes between two parts with the same shift are cheaper to encode as differences than as new bytes.
    private func isOneCover(_ gap: Range<Int>, _ shift: Int) -> Bool {
        if gap.count <= 8 { return true }
        let same = agreeing(gap, shift)
        return same * 4 >= gap.count || gap.count <= 200 && same * 8 >= gap.count
    }

    /// Returns the number of matching bytes in the part.
    private func agreeing(_ part: Range<Int>, _ shift: Int) -> Int {
        var sum = 0
        for place in part where isInside(place, shift) && byte(new, place) == byte(source, place + shift) { sum += 1 }
        return sum
    }

    /// Returns how far a cover extends into the gap after it: to the position at which the number of matching bytes exceeds
    /// that of differing bytes most.
    private func extended(_ gap: Range<Int>, _ shift: Int) -> Int {
        var (score, best, end) = (0, 0, gap.lowerBound)
        for place in gap {
            guard place + shift < sourceCount, score >= best - 32 else { break }
            score += byte(new, place) == byte(source, place + shift) ? 1 : -1
            if score > best { (best, end) = (score, place + 1) }
        }
        return end
    }

    private func extendedBack(_ gap: Range<Int>, _ shift: Int) -> Int {
        var (score, best, begin) = (0, 0, gap.upperBound)
        for place in gap.reversed() {
            guard place + shift >= 0, score >= best - 32 else { break }
            score += byte(new, place) == byte(source, place + shift) ? 1 : -1
            if score > best { (best, begin) = (score, place) }
        }
        return begin
    }

    /// Returns the border between two covers that could both contain the part.
    private func border(_ part: Range<Int>, _ one: Int, _ other: Int) -> Int {
        var (score, best, border) = (0, 0, part.lowerBound)
        for place in part {
            if byte(new, place) == byte(source, place + one) { score += 1 }
            if byte(new, place) == byte(source, place + other) { score -= 1 }
            if score > best { (best, border) = (score, place + 1) }
        }
        return border
    }

    // MARK: - Comparing bytes

    private func isInside(_ place: Int, _ shift: Int) -> Bool { place + shift >= 0 && place + shift < sourceCount }

    /// Returns whether the next eight bytes agree.
    @inline(__always)
    private func agrees(at place: Int, _ shift: Int) -> Bool {
        guard place + 8 <= count, place + shift >= 0, place + shift + 8 <= sourceCount else { return false }
        return word(new, place) == word(source, place + shift)
    }

    /// Returns the number of matching bytes from this position.
    @inline(__always)
    private func equal(_ place: Int, _ shift: Int) -> Int {
        let most = min(count - place, sourceCount - place - shift)
        var length = 0
        while length + 8 <= most {
            let difference = word(new, place + length) ^ word(source, place + shift + length)
            if difference != 0 { return length + difference.trailingZeroBitCount / 8 }
            length += 8
        }
        while length < most, byte(new, place + length) == byte(source, place + shift + length) { length += 1 }
        return length
    }

    /// Reads eight bytes in little-endian order: the first byte is the least significant one on every machine.
    @inline(__always)
    private func word(_ start: UnsafeRawPointer, _ place: Int) -> UInt64 {
        UInt64(littleEndian: start.loadUnaligned(fromByteOffset: place, as: UInt64.self))
    }

    @inline(__always)
    private func byte(_ start: UnsafeRawPointer, _ place: Int) -> UInt8 {
        start.load(fromByteOffset: place, as: UInt8.self)
    }
}
