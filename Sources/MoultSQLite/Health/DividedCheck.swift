internal import MoultBasics
internal import MoultFiles

/// A quick check of a database on several threads. Each table is checked separately on its own connection, while another thread
/// accounts for all pages. Only for a file that no other process uses.
///
/// The check itself reports no faults: if anything is unusual, SQLite must check the whole file, and reports the findings.
package struct DividedCheck {
    let path: String
    let access: Access
    /// The time limit for each thread, in seconds.
    let deadline: Double
    let threads: Int
    /// The size in bytes below which the check of a database is not divided, because one thread is fast enough.
    let smallest: Int

    /// At least one in this many pages must be outside the largest table.
    private static let minShare = 8
    /// The maximum number of tables: SQLite reads the whole schema to check each of them.
    private static let maxTables = 1000

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

    /// Returns true if nothing is unusual, which means that `quickCheck` would find no fault.
    package func isSound(_ connection: Connection) throws -> Bool {
        guard threads > 1, try connection.fileSize() >= smallest else { return false }
        do {
            let parts = try parts(connection)
            try Workers.run(jobs: parts.count, threads: threads) {
                let own = try Connection.openGuarded(path: path, access: access, deadline: deadline)
                return { try verify(parts[$0], own) }
            }
            return true
        } catch is RawPages.NeedsFullCheck {
            return false
        } catch let error as MoultError where error.code == .databaseCorrupt {
            // The check of the whole file reports the damage.
            return false
        }
    }

    /// Returns the parts to check, largest first, so that all threads finish at about the same time.
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
        // SQLite's check of a single table cannot be divided: if one table is nearly the whole file, nothing is gained.
        let (all, largest) = (sizes.values.reduce(0, +), tables.first?.value ?? 0)
        guard (all - largest) * Self.minShare >= all, tables.count <= Self.maxTables else {
            throw RawPages.NeedsFullCheck()
        }
        return tables.map { .table($0.key) } + [.pages(roots: roots)]
    }

    private func verify(_ part: Part, _ connection: Connection) throws {
        switch part {
        case .pages(let roots): try PageAccounting.verify(path, roots: roots)
        case .table(let name):
            do {
                if try connection.quickCheck(ofTable: name).isEmpty { return }
            } catch let error where error.sqlite?.resultCode.primary == .error {
                // SQLite cannot find a name that the schema mentions.
            }
            throw RawPages.NeedsFullCheck()
        }
    }
}
