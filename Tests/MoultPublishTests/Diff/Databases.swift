import MoultFiles
import MoultSQLite
import TestSupport

extension Scratch {
    /// Creates a database with these statements and returns its path.
    @discardableResult
    func database(_ name: String, _ sql: String) throws -> String {
        let connection = try Connection(path: path(name), access: .readWriteCreate)
        try connection.execute(sql)
        try connection.close()
        return path(name)
    }

    /// Creates two databases that begin with the same statements.
    func pair(_ both: String, old: String = "", new: String = "") throws -> (old: String, new: String) {
        (try database("old.db", both + ";" + old), try database("new.db", both + ";" + new))
    }
}
