internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

/// Compares two database files, which may be in use and may be malicious, and changes neither of them.
package struct DatabaseComparison {
    private let name: String
    private let old: String
    private let new: String
    private let options: DiffOptions
    private let subjects: (old: String, new: String)

    package init(
        _ name: String, old: String, new: String, of subjects: (old: String, new: String)? = nil,
        options: DiffOptions = DiffOptions()
    ) {
        (self.name, self.old, self.new, self.options) = (name, old, new, options)
        self.subjects = subjects ?? (old, new)
    }

    package func diff() throws -> DatabaseDiff {
        var diff = DatabaseDiff(name: name, old: old, new: new)
        // This check comes before SQLite opens the files: closing another descriptor of a file drops the locks that SQLite has
        // on it.
        if try isSameFile() {
            diff.isSameFile = true
            return diff
        }
        diff = try LockFreeReader.into(old, deadline: deadline(old)) { oldConnection, oldWay in
            try LockFreeReader.into(new, deadline: deadline(new)) { newConnection, newWay in
                var diff = diff
                try oldConnection.reading {
                    try newConnection.reading {
                        let sides = Sides(
                            old: oldConnection, new: newConnection, areWhole: oldWay.isWhole && newWay.isWhole)
                        try requireSound(oldConnection, isAlone: old == subjects.old, subjects.old)
                        try requireSound(newConnection, isAlone: new == subjects.new, subjects.new)
                        try compare(sides, &diff)
                    }
                }
                return diff
            }
        }
        if options.pages { diff.pages = try PageMap(old: old, new: new) }
        return diff
    }

    /// Throws if the database is damaged, because unreadable rows must not be reported as a difference.
    private func requireSound(_ connection: Connection, isAlone: Bool, _ subject: String) throws {
        let damage = try connection.soundness(full: false).damage
        guard let first = damage.first else { return }
        throw MoultError(
            .diff, what: isAlone ? "\(subject) is damaged" : "the database \(name) of \(subject) is damaged",
            why: first, now: "To see the findings: \(moult: "inspect", subject)")
    }

    private struct Sides {
        let old: Connection
        let new: Connection
        /// Whether the whole content is in the database files, and none of it only in a WAL.
        let areWhole: Bool
    }

    private func compare(_ sides: Sides, _ diff: inout DatabaseDiff) throws {
        let (was, now) = try (
            Identity(of: sides.old, ignoring: ownTables), Identity(of: sides.new, ignoring: ownTables)
        )
        diff.properties = Self.properties(was, now)
        diff.schema = SchemaChange.all(from: was.shape, to: now.shape)
        let (before, after) = (try TableComparison.Side(sides.old), try TableComparison.Side(sides.new))
        for key in Set(before.tables.keys).union(after.tables.keys).sorted() {
            let table = TableComparison(key, old: before, new: after) { [name, options] in
                try options.progress(name, $0, $1)
            }
            diff.tables.append(try table.diff(samples: options.samples, mayReadFiles: sides.areWhole))
        }
    }

    private static func properties(_ old: Identity, _ new: Identity) -> [DatabaseDiff.PropertyChange] {
        let all = [
            ("user_version", "\(old.userVersion)", "\(new.userVersion)"),
            ("application_id", "\(old.applicationID)", "\(new.applicationID)"),
            ("encoding", old.encoding, new.encoding), ("page_size", "\(old.pageSize)", "\(new.pageSize)"),
        ]
        return all.filter { $0.1 != $0.2 }.map { .init(name: $0.0, old: $0.1, new: $0.2) }
    }

    /// Returns a time limit far above what a normal file of this size needs.
    private func deadline(_ path: String) throws -> Double {
        600 + Double(try Files.factsThroughLinks(path)?.size ?? 0) / 1e6
    }

    /// Returns whether both sides are the same file, or two files with the same bytes and without sidecars.
    private func isSameFile() throws -> Bool {
        guard let one = try Files.factsThroughLinks(old), let two = try Files.factsThroughLinks(new) else {
            return false
        }
        if (one.device, one.inode) == (two.device, two.inode) { return true }
        guard one.size == two.size, try Sidecars.of(old).isEmpty, try Sidecars.of(new).isEmpty else { return false }
        var isSame = true
        try BlockPairs(old: old, new: new, blockSize: 256 << 10).forEach { one, two in
            isSame = MoultPublish.isSame(one, two)
            return isSame
        }
        return isSame
    }
}

extension LockFreeReader.Way {
    fileprivate var isWhole: Bool {
        switch self {
        case .locks, .closed: true
        case .sharedMemory, .privateIndex: false
        }
    }
}
