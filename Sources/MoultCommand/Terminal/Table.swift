internal import MoultBasics

/// A table with aligned columns; the last column is wrapped at the terminal's width. Cells that do not fit into the rest of a line
/// go to a line of their own below it.
struct Table: Sendable {
    enum Alignment: Sendable { case left, right }

    struct Column: Sendable {
        let alignment: Alignment
        var gap = 2
        /// The smallest width, so that several tables line up.
        var minWidth = 0

        static let left = Self(alignment: .left)
        static let right = Self(alignment: .right)
        static func left(gap: Int = 2, minWidth: Int = 0) -> Self {
            Self(alignment: .left, gap: gap, minWidth: minWidth)
        }
    }

    private let columns: [Column]
    private let indent: Int
    private var rows: [[StyledText]] = []

    init(_ columns: Column..., indent: Int = 0) { self.init(columns, indent: indent) }

    init(_ columns: [Column], indent: Int = 0) {
        self.columns = columns
        self.indent = indent
    }

    var isEmpty: Bool { rows.isEmpty }

    mutating func row(_ cells: StyledText...) { row(cells) }
    mutating func row(_ cells: [StyledText]) { rows.append(cells) }
    mutating func header(_ titles: String...) { rows.append(titles.map { StyledText($0, .heading) }) }

    func completing(_ complete: (Advice.Command) -> Advice.Command) -> Table {
        var table = self
        table.rows = rows.map { $0.map { $0.completing(complete) } }
        return table
    }

    /// Returns the lines for a terminal of this width; nil disables wrapping and gives one line per row, for programs.
    func lines(width: Int?) -> [StyledText] {
        let widths = columns.indices.map { column in
            rows.reduce(columns[column].minWidth) { max($0, $1.indices.contains(column) ? $1[column].width : 0) }
        }
        return rows.flatMap { lines(of: $0, widths: widths, width: width) }
    }

    private func lines(of cells: [StyledText], widths: [Int], width: Int?) -> [StyledText] {
        var lines: [StyledText] = []
        var line = spaces(indent)
        // Where the next cell's column starts, and the spaces before the cell.
        var (start, pending) = (indent, 0)
        // The terms of some lists are indented by spaces of their own.
        let below = indent + 4 + (cells.first?.plain.prefix { $0 == " " }.count ?? 0)
        for (index, cell) in cells.enumerated() {
            let column = columns[index]
            if cell.width == 0 {
                pending += widths[index] + column.gap
                start += widths[index] + column.gap
                continue
            }
            let isWrapped = index == columns.count - 1 && column.alignment == .left
            // A wrapped cell gets at least 20 columns, because text in a narrower strip is hard to read.
            let needed = isWrapped ? min(cell.width, max(cell.longestWord, 20)) : widths[index]
            if let width, index > 0, start + needed > width {
                if !line.isBlank { lines.append(line) }
                line = spaces(below)
                (start, pending) = (below, 0)
            }
            let padding = spaces(widths[index] - cell.width)
            let before = spaces(pending) + (column.alignment == .right ? padding : StyledText())
            if isWrapped {
                let parts = width.map { cell.wrapped(to: max($0 - start, 20)) } ?? [cell]
                return lines + [line + before + parts[0]] + parts.dropFirst().map { spaces(start) + $0 }
            }
            line += before + cell
            pending = (column.alignment == .left ? padding.width : 0) + column.gap
            start += widths[index] + column.gap
        }
        return line.isBlank && !lines.isEmpty ? lines : lines + [line]
    }
}

extension StyledText {
    fileprivate var isBlank: Bool { plain.allSatisfy { $0 == " " } }
}

func spaces(_ count: Int) -> StyledText { StyledText(String(repeating: " ", count: max(0, count))) }
