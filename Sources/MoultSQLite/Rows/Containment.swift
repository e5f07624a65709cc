import MoultBasics
import MoultFiles

extension Connection {
    /// Returns whether this database has all rows, tables and definitions of another one, whose file nothing else uses. Returns false
    /// if the two cannot be compared.
    package func hasAll(of path: String) throws -> Bool {
        do {
            let other = try Connection(path: path, access: .immutable)
            let isEmpty = try AppContent(of: other, against: self).isEmpty
            try other.close()
            return isEmpty
        } catch is MoultError { return false }
    }
}

extension NonInvasiveReader {
    /// Returns whether the database at a path has all of another one. Returns false if the path has no database.
    package static func has(_ path: String, allOf other: String) throws -> Bool {
        guard try Files.factsThroughLinks(path)?.kind == .file else { return false }
        do { return try into(path) { try $0.hasAll(of: other) } } catch is MoultError { return false }
    }
}
