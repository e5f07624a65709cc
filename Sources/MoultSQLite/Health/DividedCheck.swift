internal import MoultBasics
internal import MoultFiles

/// A quick look whether a database is sound, on several threads: each table by itself, on connections of their own, and
/// next to them an accounting of all pages. Only for a file that this process alone uses.
///
/// It finds nothing: where anything is not plain, SQLite must check the whole file, and its words count.
package struct DividedCheck {
    let path: String
    let access: Access
    /// Seconds for each thread.
    let deadline: Double
    let threads: Int
    /// A smaller database is checked before a thread has started.
    let smallest: Int

    /// An eighth of the file must be next to the largest table.
    private static let leastShare = 8
    /// For each SQLite goes through the whole schema.
    private static let mostTables = 1000

    package init(
        path: String, access: Access, deadline: Double, threads: Int = Threads.cores, smallest: Int = 16 << 20
    ) {
        (self.path, self.access, self.deadline) = (path, access, deadline)
        (self.threads, self.smallest) = (threads, smallest)
    }

    private enum Part {
        case pages(roots: [Int])
        case table(String)
    }

    /// Whether everything is plain, so that `quickCheck` of this connection to the file would find nothing.
    package func isSound(_ connection: Connection) throws -> Bool {
        guard threads > 1, try connection.fileSize() >= smallest else { return false }
        do {
            let parts = try parts(connection)
            try Workers.run(jobs: parts.count, threads: threads) {
                let own = try Connection.openGuarded(path: path, access: access, deadline: deadline)
                return { try prove(parts[$0], own) }
            }
            return true
        } catch is RawPages.NeedsFullCheck {
            return false
        } catch let error as MoultError where error.code == .databaseCorrupt {
            // The check of the whole file reports the reason why this one cannot read.
            return false
        }
    }

    /// The largest first, so that no thread has much left when the others have nothing.
    private func parts(_ connection: Connection) throws -> [Part] {
        let pages = try RawPages(path)
        var sizes = ["sqlite_schema": try pages.estimate(1)]
        var roots = [1]
        let trees = "SELECT tbl_name, rootpage FROM sqlite_schema WHERE type IN ('table', 'index')"
        for row in try connection.query(trees) {
            guard case .text(let table)? = row.first, case .integer(let root)? = row.last else {
                throw RawPages.NeedsFullCheck()
            }
            // A virtual table has no tree of its own.
            let size = root == 0 ? 0 : try pages.estimate(Int(root))
            if root != 0 { roots.append(Int(root)) }
            sizes[table, default: 0] += size
        }
        let tables = sizes.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        // SQLite's check of a table cannot be divided: if one table is nearly the whole file, nothing is gained.
        let (all, largest) = (sizes.values.reduce(0, +), tables.first?.value ?? 0)
        guard (all - largest) * Self.leastShare >= all, tables.count <= Self.mostTables else {
            throw RawPages.NeedsFullCheck()
        }
        return tables.map { .table($0.key) } + [.pages(roots: roots)]
    }

    private func prove(_ part: Part, _ connection: Connection) throws {
        switch part {
        case .pages(let roots): try PageAccounting.prove(path, roots: roots)
        case .table(let name):
            do {
                if try connection.quickCheck(ofTable: name).isEmpty { return }
            } catch let error where error.sqlite?.resultCode.primary == .error {
                // A name that the schema has and SQLite does not know.
            }
            throw RawPages.NeedsFullCheck()
        }
    }
}
