/// The properties of a database that identify the kind of its data, without the data itself.
package struct Identity: Equatable, Sendable {
    package var applicationID: Int32
    package var userVersion: Int32
    /// `UTF-8`, `UTF-16le` or `UTF-16be`.
    package var encoding: String
    package var pageSize: Int
    package var pageCount: Int
    package var shape: SchemaShape

    package init(of connection: Connection, schema: String = "main", ignoring: Set<String> = []) throws {
        let pragma = "PRAGMA \(quoteIdentifier(schema))."
        applicationID = Int32(truncatingIfNeeded: try connection.int(pragma + "application_id"))
        userVersion = Int32(truncatingIfNeeded: try connection.int(pragma + "user_version"))
        encoding = try connection.withStatement(pragma + "encoding") { try $0.step() ? $0.text(0) : "" }
        pageSize = Int(try connection.int(pragma + "page_size"))
        pageCount = Int(try connection.int(pragma + "page_count"))
        shape = try SchemaShape(of: connection, schema: schema, ignoring: ignoring)
    }
}
