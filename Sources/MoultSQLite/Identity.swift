/// The properties of a database that identify the kind of its data, without the data itself.
package struct Identity: Equatable, Sendable {
    package var applicationID: Int32
    package var userVersion: Int32
    /// `UTF-8`, `UTF-16le` or `UTF-16be`.
    package var encoding: String
    package var pageSize: Int
    package var pageCount: Int
    package var shape: SchemaShape

    package init(of connection: Connection, ignoring: Set<String> = []) throws {
        applicationID = Int32(truncatingIfNeeded: try connection.int("PRAGMA main.application_id"))
        userVersion = Int32(truncatingIfNeeded: try connection.int("PRAGMA main.user_version"))
        encoding = try connection.encoding
        pageSize = Int(try connection.int("PRAGMA main.page_size"))
        pageCount = Int(try connection.int("PRAGMA main.page_count"))
        shape = try SchemaShape(of: connection, ignoring: ignoring)
    }
}
