internal import Glibc
internal import MoultBasics

/// Splits the bytes of a file into rows and fields, exactly as the sqlite3 shell's `.import` does.
///
/// A field that begins with `"` ends with a `"` before a separator or the end of the file; `""` in it is one `"`. A
/// quote anywhere else is a character like others. A NUL ends the text of its field.
final class RowReader {
    private let format: RowFormat
    /// Fills the buffer with the file's next bytes; 0 at the end.
    private let source: (UnsafeMutableRawBufferPointer) throws -> Int
    /// What each byte means outside of quotes: one of the bits below, or 0.
    private let meaning: UnsafeMutableBufferPointer<UInt8>
    /// The beginning of a row whose end is in the next batch.
    private var rest: [UInt8] = []
    private var line = 1
    private var atEnd = false
    private var atStart = true

    private static let columnBit: UInt8 = 1
    private static let rowBit: UInt8 = 2
    private static let nulBit: UInt8 = 4
    private static let highBit: UInt8 = 8
    private static let doubledBit: UInt8 = 16
    private static let quote = UInt8(ascii: "\"")
    private static let carriageReturn = UInt8(ascii: "\r")
    /// SQLite takes no text beyond this, whatever its limits are set to.
    private static let longestRow = 1 << 30

    init(format: RowFormat, source: @escaping (UnsafeMutableRawBufferPointer) throws -> Int) {
        self.format = format
        self.source = source
        meaning = .allocate(capacity: 256)
        for byte in 0..<256 { meaning[byte] = byte >= 0x80 ? Self.highBit : 0 }
        meaning[0] = Self.nulBit
        meaning[Int(format.column)] = Self.columnBit
        meaning[Int(format.row)] = Self.rowBit
    }

    deinit { meaning.deallocate() }

    /// Fills the batch with the next whole rows; false if there are none.
    func fill(_ batch: RowBatch) throws -> Bool {
        batch.clear()
        while batch.bytes.count < rest.count * 2 { batch.grow(to: batch.bytes.count * 2, keeping: 0) }
        _ = batch.bytes.update(fromContentsOf: rest)
        var count = rest.count
        rest.removeAll(keepingCapacity: true)
        while true {
            count = try read(into: batch, after: count)
            var start = 0
            if atStart, format.style == .csv, batch.bytes[..<count].starts(with: [0xEF, 0xBB, 0xBF]) { start = 3 }
            atStart = false
            let parsed = parse(batch, from: start, to: count)
            if !batch.rows.isEmpty || atEnd {
                rest.append(contentsOf: batch.bytes[parsed..<count])
                return !batch.rows.isEmpty
            }
            // Not even one row fits.
            guard count < Self.longestRow else {
                throw MoultError(
                    .importing, what: "line \(line): the row that begins here is longer than \(ByteCount(count))",
                    now: "Is a closing quote missing?")
            }
            batch.grow(to: batch.bytes.count * 2, keeping: count)
        }
    }

    /// Fills the batch up to its capacity or the file's end; returns the number of bytes in it.
    private func read(into batch: RowBatch, after count: Int) throws -> Int {
        var count = count
        while count < batch.bytes.count, !atEnd {
            let room = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(batch.bytes)[count...])
            let more = try source(room)
            if more == 0 { atEnd = true }
            count += more
        }
        return count
    }

    /// Takes whole rows; returns where the first incomplete one begins.
    private func parse(_ batch: RowBatch, from start: Int, to end: Int) -> Int {
        guard let bytes = batch.bytes.baseAddress, let meaning = meaning.baseAddress else { return end }
        var index = start
        while index < end {
            let before = (line, batch.fields.count, batch.notices.count)
            guard let next = parseRow(batch, bytes, meaning, from: index, to: end) else {
                line = before.0
                batch.fields.removeLast(batch.fields.count - before.1)
                batch.notices.removeLast(batch.notices.count - before.2)
                return index
            }
            index = next
        }
        return index
    }

    /// Takes one row; returns the index behind it, nil if its end is not there yet.
    private func parseRow(
        _ batch: RowBatch, _ bytes: UnsafeMutablePointer<UInt8>, _ meaning: UnsafePointer<UInt8>, from start: Int,
        to end: Int
    ) -> Int? {
        let firstField = batch.fields.count
        let firstLine = line
        var index = start
        var seen: UInt8 = 0
        var ended = false
        while !ended {
            if index == end, !atEnd { return nil }
            if index == end {
                batch.fields.append(.missing)
                ended = true
            } else if bytes[index] == Self.quote, format.style == .csv {
                guard let (field, next, terminator) = parseQuoted(batch, bytes, meaning, from: index, to: end, &seen)
                else { return nil }
                batch.fields.append(field)
                ended = terminator != Self.columnBit
                index = next
            } else {
                let begin = index
                while index < end {
                    let what = meaning[Int(bytes[index])]
                    if what & (Self.columnBit | Self.rowBit) != 0 { break }
                    seen |= what
                    index += 1
                }
                if index == end, !atEnd { return nil }
                var stop = index
                if index < end {
                    ended = bytes[index] == format.row
                    if ended {
                        line += 1
                        if format.style == .csv, stop > begin, bytes[stop - 1] == Self.carriageReturn { stop -= 1 }
                    }
                    index += 1
                } else {
                    ended = true
                }
                batch.fields.append(RowBatch.Field(start: UInt32(begin), end: UInt32(stop)))
            }
        }
        if seen != 0 { finish(batch, bytes, fromField: firstField, seen, line: firstLine) }
        batch.rows.append(
            RowBatch.Row(firstField: firstField, fieldCount: batch.fields.count - firstField, line: firstLine))
        return index
    }

    /// Takes a field that begins with a quote: its raw bytes between the quotes, the index behind its terminator, and
    /// which separator that is (0 for the end of the file). Nil if its end is not there yet.
    private func parseQuoted(
        _ batch: RowBatch, _ bytes: UnsafeMutablePointer<UInt8>, _ meaning: UnsafePointer<UInt8>, from start: Int,
        to end: Int, _ seen: inout UInt8
    ) -> (RowBatch.Field, next: Int, terminator: UInt8)? {
        let firstLine = line
        func notice(_ kind: RowBatch.Notice.Kind, line: Int) {
            let column = batch.fields.count - (batch.rows.last.map { $0.firstField + $0.fieldCount } ?? 0) + 1
            batch.notices.append(.init(kind: kind, line: line, row: batch.rows.count, column: column))
        }
        func field(to stop: Int) -> RowBatch.Field { .init(start: UInt32(start + 1), end: UInt32(stop)) }
        // The byte before, and the one before that; 0 where the second quote of a pair was.
        var last: UInt8 = 0
        var beforeLast: UInt8 = 0
        var index = start + 1
        while index < end {
            let byte = bytes[index]
            let what = meaning[Int(byte)]
            if what == Self.rowBit { line += 1 }
            if byte == Self.quote, last == Self.quote {
                seen |= Self.doubledBit
                last = 0
                index += 1
                continue
            }
            if last == Self.quote {
                if what == Self.columnBit || what == Self.rowBit { return (field(to: index - 1), index + 1, what) }
                if byte != Self.carriageReturn { notice(.unescapedQuote, line: line) }
            } else if what == Self.rowBit, last == Self.carriageReturn, beforeLast == Self.quote {
                return (field(to: index - 2), index + 1, what)
            }
            seen |= what & (Self.nulBit | Self.highBit)
            beforeLast = last
            last = byte
            index += 1
        }
        if !atEnd { return nil }
        if last == Self.quote { return (field(to: end - 1), end, 0) }
        notice(.unterminatedQuote, line: firstLine)
        return (field(to: end), end, 0)
    }

    /// Does what only few rows need: makes one of doubled quotes, ends fields at a NUL, looks for what is not UTF-8.
    private func finish(
        _ batch: RowBatch, _ bytes: UnsafeMutablePointer<UInt8>, fromField first: Int, _ seen: UInt8, line: Int
    ) {
        func notice(_ kind: RowBatch.Notice.Kind, _ field: Int) {
            batch.notices.append(.init(kind: kind, line: line, row: batch.rows.count, column: field - first + 1))
        }
        for index in first..<batch.fields.count where !batch.fields[index].isMissing {
            var field = batch.fields[index]
            let start = Int(field.start)
            let isQuoted = start > 0 && bytes[start - 1] == Self.quote && format.style == .csv
            if seen & Self.doubledBit != 0, isQuoted {
                field.end = UInt32(Self.uniteQuotes(bytes, start, Int(field.end)))
            }
            if seen & Self.nulBit != 0, let nul = memchr(bytes + start, 0, Int(field.end) - start) {
                field.end = UInt32(UnsafeRawPointer(bytes).distance(to: UnsafeRawPointer(nul)))
                notice(.nul, index)
            }
            batch.fields[index] = field
            if seen & Self.highBit != 0, !isUTF8(batch.text(field)) { notice(.notUTF8, index) }
        }
    }

    /// Moves the bytes together so that two quotes become one; returns the new end.
    private static func uniteQuotes(_ bytes: UnsafeMutablePointer<UInt8>, _ start: Int, _ end: Int) -> Int {
        var to = start
        var last: UInt8 = 0
        for from in start..<end {
            let byte = bytes[from]
            if byte == quote, last == quote {
                last = 0
                continue
            }
            bytes[to] = byte
            to += 1
            last = byte
        }
        return to
    }
}

/// Whether the bytes are well-formed UTF-8.
func isUTF8(_ bytes: UnsafeRawBufferPointer) -> Bool {
    let span = unsafe Span<UInt8>(_unsafeBytes: bytes)
    do {
        _ = try UTF8Span(validating: span)
        return true
    } catch { return false }
}
