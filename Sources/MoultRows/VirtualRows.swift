import MoultBasics
import MoultSQLite

extension Schema {
    /// Returns the number of rows of a virtual table that have no equal row in another database; all of them without one.
    func countOwn(virtual name: SQLName, absentIn other: Schema?) throws -> Int {
        if isTree(name) {
            do { return try countOwn(name, absentIn: other) } catch let error as MoultError
                where error.code == .databaseCorrupt || AppNeed(error) != nil
            {
                // The rows of the tables in which it is stored can still be compared, and show any damage of these.
            }
        }
        return try shadows(of: name).reduce(0) { try $0 + countOwn($1, absentIn: other) }
    }

    private func countOwn(_ name: SQLName, absentIn other: Schema?) throws -> Int {
        let layout = try listed(name)
        guard let other, other.all[name]?.type == all[name]?.type, let before = try other.table(name) else {
            return Int(try connection.int("\(layout.rows.countSQL)"))
        }
        var count = 0
        let comparison = try RowComparison(
            .init(before, other.connection), .init(layout, connection), isWanted: { _ in false })
        _ = try comparison.run { difference, _, _ in if difference != .removed { count += 1 } }
        return count
    }
}
