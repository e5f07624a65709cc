/// How far a long operation is: the phase it is in, and what of it is done.
package struct Progress: Sendable, Equatable {
    /// What is going on, in a few words: `copy food`.
    package var phase: String
    package var done: Int
    /// How much there is to do; nil where nobody knows.
    package var total: Int?
    package var unit: Unit

    package enum Unit: Sendable, Equatable {
        case bytes
        /// Things that are counted: rows, pages, files.
        case items
    }

    package init(_ phase: String, done: Int, of total: Int? = nil, unit: Unit = .bytes) {
        self.phase = phase
        self.done = done
        self.total = total
        self.unit = unit
    }
}
