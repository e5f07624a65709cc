/// Verifies that each page of a database file belongs to exactly one tree or overflow chain, or to the freelist.
///
/// SQLite's checks of single tables do not detect a page that two tables share, or that belongs to none. The accounting only
/// detects that something is unusual; SQLite's check of the whole file reports the fault, if any.
struct PageAccounting {
    private let pages: RawPages
    private var isTaken: [Bool]
    private var taken = 0

    private init(_ pages: RawPages) throws {
        self.pages = pages
        isTaken = Array(repeating: false, count: pages.count)
        // The page with the lock bytes belongs to no tree.
        let locks = (1 << 30) / pages.size + 1
        if locks <= pages.count { try take(locks) }
    }

    /// Throws `NeedsFullCheck` unless every page is accounted for, given the root pages of all trees.
    static func verify(_ path: String, roots: [Int]) throws {
        var accounting = try PageAccounting(RawPages(path))
        for root in roots { try accounting.takeTree(root) }
        try accounting.takeFreePages()
        if accounting.taken != accounting.pages.count { throw RawPages.NeedsFullCheck() }
    }

    private mutating func takeTree(_ root: Int) throws {
        var waiting = [try taking(root)]
        while let next = waiting.popLast() {
            let node = try pages.node(next)
            if node.isInterior { try waiting.append(taking(pages.number(node.places - 4))) }
            for index in 0..<node.cells {
                var place = try pages.cell(index, of: node)
                if node.isInterior {
                    try waiting.append(taking(pages.number(place)))
                    place += 4
                    // An interior cell of a table has no content.
                    if node.isTable { continue }
                }
                guard let chain = try pages.overflow(at: place, isTable: node.isTable) else { continue }
                var page = chain.first
                for _ in 0..<chain.count {
                    try take(page)
                    page = try pages.firstNumber(of: page)
                }
            }
        }
    }

    private mutating func takeFreePages() throws {
        try pages.read(1)
        var (trunk, expected) = (pages.number(32), pages.number(36))
        while trunk != 0 {
            try take(trunk)
            try pages.read(trunk)
            let leaves = pages.number(4)
            guard leaves <= pages.usable / 4 - 2 else { throw RawPages.NeedsFullCheck() }
            for index in 0..<leaves { try take(pages.number(8 + 4 * index)) }
            expected -= leaves + 1
            trunk = pages.number(0)
        }
        if expected != 0 { throw RawPages.NeedsFullCheck() }
    }

    private mutating func take(_ number: Int) throws {
        guard number > 0, number <= pages.count, !isTaken[number - 1] else { throw RawPages.NeedsFullCheck() }
        isTaken[number - 1] = true
        taken += 1
    }

    private mutating func taking(_ number: Int) throws -> Int {
        try take(number)
        return number
    }
}

extension RawPages {
    /// Returns an estimate of the number of pages in a tree, assuming that all branches are like the first one.
    func estimate(_ root: Int) throws -> Int {
        var (sum, width, place) = (1, 1, root)
        while sum < count {
            let node = try node(place)
            guard node.isInterior, node.cells > 0 else { break }
            width *= node.cells + 1
            sum += width
            place = number(try cell(0, of: node))
        }
        return min(sum, count)
    }
}
