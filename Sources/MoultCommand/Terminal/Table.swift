/// A table with aligned columns; the last column is wrapped at the terminal's width.
package struct Table: Sendable {
    package enum Alignment: Sendable { case left, right }

    package struct Column: Sendable {
        let alignment: Alignment
        /// Spaces after the column.
        let gap: Int

        package static let left = Self(alignment: .left, gap: 2)
        package static let right = Self(alignment: .right, gap: 2)
        package static func left(gap: Int) -> Self { Self(alignment: .left, gap: gap) }
    }

    private let columns: [Column]
    private let indent: Int
    private var rows: [[StyledText]] = []

    package init(_ columns: Column..., indent: Int = 0) { self.init(columns, indent: indent) }

    package init(_ columns: [Column], indent: Int = 0) {
        self.columns = columns
        self.indent = indent
    }

    package var isEmpty: Bool { rows.isEmpty }

    package mutating func row(_ cells: StyledText...) { row(cells) }
    package mutating func row(_ cells: [StyledText]) { rows.append(cells) }
    package mutating func header(_ titles: String...) { rows.append(titles.map { StyledText($0, .heading) }) }

    /// Returns the lines for a terminal of this width; nil disables wrapping and gives one line per row, for programs.
    package func lines(width: Int?) -> [StyledText] {
        let widths = columns.indices.map { column in
            rows.map { $0.indices.contains(column) ? $0[column].width : 0 }.max() ?? 0
        }
        // The last column's continuation lines start at the same position as the column.
        let start = indent + zip(columns, widths).dropLast().reduce(0) { $0 + $1.1 + $1.0.gap }
        return rows.flatMap { lines(of: $0, widths: widths, start: start, width: width) }
    }

    private func lines(of cells: [StyledText], widths: [Int], start: Int, width: Int?) -> [StyledText] {
        var line = spaces(indent)
        for (index, cell) in cells.enumerated() {
            let column = columns[index]
            let padding = spaces(widths[index] - cell.width)
            if index == cells.count - 1, index == columns.count - 1, column.alignment == .left {
                // The cell gets at least 20 columns, because text in a narrower strip is hard to read.
                let room = width.map { max($0 - start, 20) }
                let parts = room.map { cell.wrapped(to: $0) } ?? [cell]
                return [line + parts[0]] + parts.dropFirst().map { spaces(start) + $0 }
            }
            line += column.alignment == .right ? padding + cell : cell
            if index < cells.count - 1 {
                line += (column.alignment == .left ? padding : StyledText()) + spaces(column.gap)
            }
        }
        return [line]
    }
}

func spaces(_ count: Int) -> StyledText { StyledText(String(repeating: " ", count: max(0, count))) }
