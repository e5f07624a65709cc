internal import MoultLibc

/// Splits bytes into rows and fields, exactly like `.import` of the sqlite3 shell. A field that starts with `"` ends with a `"`
/// before a separator or the end of the file; `""` in such a field means one `"`. A quote anywhere else is an ordinary
/// character. A NUL ends the text of its field.
final class RowSplitter {
    let format: RowFormat
    /// The meaning of each byte outside quotes: one of the bits below, or 0.
    private let meaning: UnsafeMutableBufferPointer<UInt8>

    init(_ format: RowFormat) {
        self.format = format
        meaning = .allocate(capacity: 256)
        for byte in 0..<256 { meaning[byte] = byte >= 0x80 ? Byte.high : 0 }
        meaning[0] = Byte.nul
        meaning[Int(format.column)] = Byte.column
        meaning[Int(format.row)] = Byte.row
    }

    deinit { meaning.deallocate() }

    /// Finds the complete rows in the batch's bytes; returns the start of the first row that is incomplete or does not fit.
    ///
    /// `isEnd` means that the file ends with these bytes; `line` is the line number at `start`, and is advanced to that at the
    /// returned position.
    func split(_ batch: RowBatch, _ start: Int, _ end: Int, isEnd: Bool, line: inout Int) -> Int {
        guard let bytes = batch.bytes.baseAddress, let meaning = meaning.baseAddress,
            let fields = batch.fieldRoom.baseAddress, let rows = batch.rowRoom.baseAddress
        else { return end }
        var pass = Pass(
            bytes: bytes, end: end, isEnd: isEnd, meaning: meaning, fields: fields, isCSV: format.style == .csv,
            line: line, index: start)
        while pass.index < end, batch.rowCount < batch.rowRoom.count,
            pass.fieldCount + RowBatch.widestRow <= batch.fieldRoom.count
        {
            let (begin, firstField, firstLine) = (pass.index, pass.fieldCount, pass.line)
            let noticeCount = pass.notices.count
            pass.row = batch.rowCount
            pass.firstField = firstField
            guard pass.takeRow() else {
                pass.notices.removeLast(pass.notices.count - noticeCount)
                pass.fieldCount = firstField
                (pass.index, pass.line) = (begin, firstLine)
                break
            }
            rows[batch.rowCount] = .init(
                firstField: firstField, fieldCount: pass.fieldCount - firstField, line: firstLine)
            batch.rowCount += 1
            pass.fieldCount = min(pass.fieldCount, firstField + RowBatch.widestRow)
        }
        batch.notices = pass.notices
        line = pass.line
        return pass.index
    }

    /// Bits for the meaning of a byte, and for the features of a row.
    private enum Byte {
        static let column: UInt8 = 1
        static let row: UInt8 = 2
        static let nul: UInt8 = 4
        static let high: UInt8 = 8
        static let doubled: UInt8 = 16
        static let quote = UInt8(ascii: "\"")
        static let carriageReturn = UInt8(ascii: "\r")
    }

    /// One pass through the bytes of a batch. It is a separate value, so that the compiler can keep it in registers.
    private struct Pass {
        let bytes: UnsafeMutablePointer<UInt8>
        let end: Int
        let isEnd: Bool
        let meaning: UnsafeMutablePointer<UInt8>
        let fields: UnsafeMutablePointer<RowBatch.Field>
        let isCSV: Bool
        var line: Int
        var index: Int
        var fieldCount = 0
        var notices: [RowBatch.Notice] = []
        var row = 0
        var firstField = 0
        /// The features of the row that need further processing.
        var seen: UInt8 = 0

        /// Takes one row; returns false if the end of the row has not been read yet.
        mutating func takeRow() -> Bool {
            let firstLine = line
            seen = 0
            while true {
                let ended: Bool?
                if index == end {
                    if !isEnd { return false }
                    append(.missing)
                    break
                } else if isCSV, bytes[index] == Byte.quote {
                    ended = takeQuoted()
                } else {
                    ended = takePlain()
                }
                guard let ended else { return false }
                if ended { break }
            }
            if seen != 0 { finish(line: firstLine) }
            return true
        }

        private mutating func append(_ field: RowBatch.Field) {
            if fieldCount - firstField < RowBatch.widestRow { fields[fieldCount] = field }
            fieldCount += 1
        }

        private mutating func append(from start: Int, to stop: Int) {
            append(.init(start: UInt32(truncatingIfNeeded: start), end: UInt32(truncatingIfNeeded: stop)))
        }

        /// Takes an unquoted field. Returns whether it is the last one in the row; nil if the end of the field has not been read
        /// yet.
        private mutating func takePlain() -> Bool? {
            let begin = index
            var stop = index
            var what: UInt8 = 0
            while stop < end {
                what = meaning[Int(bytes[stop])]
                if what & (Byte.column | Byte.row) != 0 { break }
                seen |= what
                stop += 1
            }
            guard stop < end else {
                if !isEnd { return nil }
                index = end
                append(from: begin, to: end)
                return true
            }
            index = stop + 1
            guard what == Byte.row else {
                append(from: begin, to: stop)
                return false
            }
            line += 1
            let hasReturn = isCSV && stop > begin && bytes[stop - 1] == Byte.carriageReturn
            append(from: begin, to: hasReturn ? stop - 1 : stop)
            return true
        }

        /// Takes a quoted field, as the raw bytes between the quotes. Returns whether it is the last one in the row; nil if the end
        /// of the field has not been read yet.
        private mutating func takeQuoted() -> Bool? {
            let firstLine = line
            let begin = index + 1
            // The previous byte, and the one before it; 0 for the second quote of a pair.
            var last: UInt8 = 0
            var beforeLast: UInt8 = 0
            var at = begin
            while at < end {
                let byte = bytes[at]
                let what = meaning[Int(byte)]
                if what == Byte.row { line += 1 }
                if byte == Byte.quote, last == Byte.quote {
                    seen |= Byte.doubled
                    last = 0
                    at += 1
                    continue
                }
                let isSeparator = what == Byte.column || what == Byte.row
                if last == Byte.quote, isSeparator { return close(from: begin, to: at - 1, next: at + 1, what) }
                if what == Byte.row, last == Byte.carriageReturn, beforeLast == Byte.quote {
                    return close(from: begin, to: at - 2, next: at + 1, what)
                }
                if last == Byte.quote, byte != Byte.carriageReturn { note(.unescapedQuote, line: line) }
                seen |= what & (Byte.nul | Byte.high)
                beforeLast = last
                last = byte
                at += 1
            }
            if !isEnd { return nil }
            if last == Byte.quote { return close(from: begin, to: end - 1, next: end, Byte.row) }
            note(.unterminatedQuote, line: firstLine)
            return close(from: begin, to: end, next: end, Byte.row)
        }

        private mutating func close(from start: Int, to stop: Int, next: Int, _ separator: UInt8) -> Bool {
            append(from: start, to: stop)
            index = next
            return separator == Byte.row
        }

        private mutating func note(_ kind: RowBatch.Notice.Kind, line: Int, field: Int? = nil) {
            let column = (field ?? fieldCount) - firstField + 1
            notices.append(.init(kind: kind, line: line, row: row, column: column))
        }

        /// Does the processing that only a few rows need: unites doubled quotes, ends fields at a NUL, and finds invalid UTF-8.
        private mutating func finish(line: Int) {
            for index in firstField..<min(fieldCount, firstField + RowBatch.widestRow) where !fields[index].isMissing {
                let start = Int(fields[index].start)
                let isQuoted = isCSV && start > 0 && bytes[start - 1] == Byte.quote
                if seen & Byte.doubled != 0, isQuoted {
                    fields[index].end = UInt32(truncatingIfNeeded: uniteQuotes(start, Int(fields[index].end)))
                }
                let count = Int(fields[index].end) - start
                if seen & Byte.nul != 0, let nul = memchr(bytes + start, 0, count) {
                    let stop = UnsafeRawPointer(bytes).distance(to: UnsafeRawPointer(nul))
                    fields[index].end = UInt32(truncatingIfNeeded: stop)
                    note(.nul, line: line, field: index)
                }
                let text = UnsafeRawBufferPointer(start: bytes + start, count: Int(fields[index].end) - start)
                if seen & Byte.high != 0, !isUTF8(text) { note(.notUTF8, line: line, field: index) }
            }
        }

        /// Moves the bytes together so that two quotes become one; returns the new end.
        private func uniteQuotes(_ start: Int, _ end: Int) -> Int {
            var to = start
            var last: UInt8 = 0
            for from in start..<end {
                let byte = bytes[from]
                if byte == Byte.quote, last == Byte.quote {
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
}

func isUTF8(_ bytes: UnsafeRawBufferPointer) -> Bool {
    let span = unsafe Span<UInt8>(_unsafeBytes: bytes)
    do {
        _ = try UTF8Span(validating: span)
        return true
    } catch { return false }
}
