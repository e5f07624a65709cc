internal import MoultPublish
internal import Synchronization

extension Call {
    /// Compares two subjects, shows how far that is, and stops if it is told to.
    func compare(
        _ old: Subject, _ new: Subject, only names: [String] = [], _ options: DiffOptions = DiffOptions()
    ) throws -> ReleaseDiff {
        let bar = progressBar()
        defer { bar.end() }
        let count = Mutex(("", 0))
        var options = options
        options.progress = { database, table, rows in
            try Interruption.check()
            let read = count.withLock { count in
                count = count.0 == table ? (table, count.1 + rows) : (table, rows)
                return count.1
            }
            bar.show(Progress("compare \(table) of \(database)", done: read, unit: .items))
        }
        return try ReleaseDiff(from: old, to: new, only: names, options: options)
    }
}
