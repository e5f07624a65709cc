internal import MoultBasics

extension DiffPage {
    /// Returns the file as a grid of squares, with the first page at the top left; a darker square has more changed pages.
    func map(_ map: PageMap) -> Markup {
        let cells = map.cells(atMost: 1024)
        if cells.isEmpty { return "" }
        let perLine = cells.count > 256 ? 64 : 32
        let lines = (cells.count + perLine - 1) / perLine
        let paths = Shade.allCases.map { shade in
            let squares = cells.indices.filter { Shade(cells[$0]) == shade }.map { index in
                "M\(plain: index % perLine * 10) \(plain: index / perLine * 10)h9v9h-9z" as Markup
            }
            return squares.isEmpty ? "" : "<path class=\(shade.rawValue) d=\"\(squares)\"/>\n" as Markup
        }
        let legend = Shade.allCases.map { "<span><i class=\($0.rawValue)></i>\($0.words)</span>\n" as Markup }
        let pages = max(1, (map.newCount + cells.count - 1) / cells.count)
        return """
            <h3>Pages</h3>
            <p>\(map.changed) of \(map.newCount) pages changed (\(percentage(map.changed, of: map.newCount)))\
            \(map.added > 0 ? ", \(map.added) new" : "")\(map.removed > 0 ? ", \(map.removed) fewer than before" : ""); \
            the page size is \(ByteCount(map.pageSize).description)\
            \(pages > 1 ? "; each square represents up to \(pages) pages" : "").</p>
            <svg class=map viewBox="0 0 \(plain: perLine * 10) \(plain: lines * 10)" role=img \
            aria-label="Map of the changed pages">
            \(paths)</svg>
            <p class=legend>\(legend)</p>

            """
    }

    private enum Shade: String, CaseIterable {
        case none = "p0"
        case few = "p1"
        case some = "p2"
        case most = "p3"
        case new = "pn"

        init(_ cell: PageMap.Cell) {
            switch cell.share {
            case _ where cell.isNew: self = .new
            case 0: self = .none
            case ..<0.25: self = .few
            case ..<0.75: self = .some
            default: self = .most
            }
        }

        var words: String {
            switch self {
            case .none: "unchanged"
            case .few: "less than a quarter changed"
            case .some: "up to three quarters changed"
            case .most: "more than three quarters changed"
            case .new: "new"
            }
        }
    }
}
