/// A line of a file, as every error and warning of a build names it.
package struct Place: Hashable, Sendable, CustomStringConvertible {
    package var file: String
    /// Counted from 1.
    package var line: Int

    package init(file: String, line: Int) { (self.file, self.line) = (file, line) }

    /// `food.sql:12`
    package var description: String { "\(file):\(line)" }
}
