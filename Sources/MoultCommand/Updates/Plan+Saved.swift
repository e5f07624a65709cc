internal import MoultBasics
internal import MoultEngine
internal import MoultFiles

extension Plan {
    /// A plan that was saved; nil if nothing is at the path.
    static func saved(in file: String) throws -> Plan? {
        try Files.read(file, limit: 1 << 26).map { try Plan(json: JSON(parsing: $0, source: file), source: file) }
    }

    /// Saves it, over an older plan at most: a slip of the pen must not cost a database.
    func save(to file: String) throws {
        // A device, or a link to one, would be replaced by the file.
        if let facts = try Files.facts(file) {
            // Whatever cannot be read as a plan is none.
            guard facts.kind == .file, facts.size == 0 || (try? Plan.saved(in: file)) != nil else {
                throw MoultError(
                    .system, what: "cannot save the plan to \(file)", why: "something else than a plan is there",
                    now: "Name another file, or print the plan with --json.")
            }
        }
        try OutputFile.write(Array(json.pretty.utf8), to: file)
    }
}
