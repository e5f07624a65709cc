package import MoultBasics

/// The differences between two databases.
package struct DatabaseDiff: Sendable, Equatable {
    /// The name of the database in its release; of a database for itself the file's name.
    package var name: String
    package var old: String
    package var new: String
    /// Both files are the same, byte for byte; then their content was not looked at.
    package var isSameFile = false
    package var properties: [PropertyChange] = []
    package var schema: [SchemaChange] = []
    /// Every table that either has, by name; the unchanged ones, too.
    package var tables: [TableDiff] = []
    /// The changed pages of the file, if that was requested and the files can be compared so.
    package var pages: PageMap?

    package var differs: Bool {
        !isSameFile && (!properties.isEmpty || !schema.isEmpty || tables.contains(where: \.differs))
    }

    /// Something that SQLite says of a whole database: `user_version`, `application_id`, `encoding`, `page_size`.
    package struct PropertyChange: Sendable, Equatable {
        package var name: String
        package var old: String
        package var new: String

        package init(name: String, old: String, new: String) { (self.name, self.old, self.new) = (name, old, new) }
    }
}

extension MoultError.Code {
    /// Two things cannot be compared.
    package static let diff = Self(952)
}

/// The requested details of a comparison, in addition to numbers.
package struct DiffOptions: Sendable {
    /// How many rows of each kind are shown of each table.
    package var samples = 0
    /// Compares the files page by page, too.
    package var pages = false
    /// Told now and then: the database, the table, and how many rows of it were read since; throws to stop.
    package var progress: @Sendable (_ database: String, _ table: String, _ rows: Int) throws -> Void = { _, _, _ in }

    package init() {}
}
