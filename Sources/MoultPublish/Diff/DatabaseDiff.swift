internal import MoultBasics

package struct DatabaseDiff: Sendable, Equatable {
    /// The name of the database in its release; for a single database, the file name.
    package var name: String
    package var old: String
    package var new: String
    /// Whether the files are identical, byte for byte. If so, their content was not compared.
    package var isSameFile = false
    package var properties: [PropertyChange] = []
    package var schema: [SchemaChange] = []
    /// Every table of either side, by name, including unchanged ones.
    package var tables: [TableDiff] = []
    /// The changed pages of the file, if requested and if the files can be compared in this way.
    package var pages: PageMap?

    package var differs: Bool {
        !isSameFile && (!properties.isEmpty || !schema.isEmpty || tables.contains(where: \.differs))
    }

    /// A property of a whole database: `user_version`, `application_id`, `encoding`, `page_size`.
    package struct PropertyChange: Sendable, Equatable {
        package var name: String
        package var old: String
        package var new: String

        package init(name: String, old: String, new: String) { (self.name, self.old, self.new) = (name, old, new) }
    }
}

/// The details of a comparison that were requested in addition to the counts.
package struct DiffOptions: Sendable {
    package var samples = 0
    package var pages = false
    /// Called regularly with the database, the table, and the number of rows read since the last call; throws to stop.
    package var progress: @Sendable (_ database: String, _ table: String, _ rows: Int) throws -> Void = { _, _, _ in }

    package init() {}
}
