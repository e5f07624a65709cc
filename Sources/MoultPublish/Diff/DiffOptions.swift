/// What a comparison shall find besides numbers.
package struct DiffOptions: Sendable {
    /// How many rows of each kind are shown of each table.
    package var samples = 0
    /// Compares the files page by page, too.
    package var pages = false
    /// Told now and then: the database, the table, and how many rows of it were read since; throws to stop.
    package var progress: @Sendable (_ database: String, _ table: String, _ rows: Int) throws -> Void = { _, _, _ in }

    package init() {}
}
