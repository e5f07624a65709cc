package import MoultBasics
internal import MoultFiles

/// The checks to run on an untrusted database.
package struct Validation: Sendable, Equatable {
    package enum Depth: String, Sendable, CaseIterable {
        /// Whether the database can be opened.
        case header
        /// The structure of the file, and each single row.
        case quick
        /// Also whether tables and indexes contain the same rows.
        case full
    }

    /// The database's name in errors.
    package var name: String
    package var path: String
    package var depth: Depth
    /// Whether to open the database read-write, because only then does SQLite check CHECK constraints; nothing is written.
    package var isWritable = false
    package var wantsIdentity = false
    package var wantsForeignKeys = false
    /// The search ends after this many findings of each kind.
    package var maxFindings = 100
    /// Queries that must each return a single value.
    package var queries: [String] = []
    /// The tables whose rows are counted, in this database and in `old`, the database to compare with.
    package var tables: [String] = []
    package var old: String?
    /// The limit on processor time for all checks, in seconds.
    package var processor: Int

    package init(name: String, path: String, depth: Depth, processor: Int) {
        (self.name, self.path, self.depth, self.processor) = (name, path, depth, processor)
    }
}

extension Validation {
    /// The request to a separate process.
    var json: JSON {
        .record([
            "name": name, "path": path, "depth": depth.rawValue, "isWritable": isWritable,
            "wantsIdentity": wantsIdentity, "wantsForeignKeys": wantsForeignKeys,
            "mostFindings": maxFindings, "queries": queries, "tables": tables, "old": old, "processor": processor,
        ])
    }

    init(_ fields: Fields) throws {
        guard let depth = try fields.word("depth", Depth.self) else { throw fields.fail("depth", "is missing") }
        self.init(
            name: try fields.string("name"), path: try fields.string("path"), depth: depth,
            processor: try fields.count("processor"))
        isWritable = try fields.optionalBool("isWritable") ?? false
        wantsIdentity = try fields.optionalBool("wantsIdentity") ?? false
        wantsForeignKeys = try fields.optionalBool("wantsForeignKeys") ?? false
        maxFindings = try fields.count("mostFindings")
        queries = try fields.optionalStrings("queries") ?? []
        tables = try fields.optionalStrings("tables") ?? []
        old = try fields.optionalString("old")
    }
}

extension Validation: WorkerRequest {
    static let verb = Validator.verb

    func protection(scratch: String) throws -> Guard {
        let size = try Files.factsThroughLinks(path)?.size ?? 0
        return Guard(
            .examiner, reading: .only([path] + (old.map { [$0] } ?? [])),
            writing: [scratch] + (isWritable ? [path] : []),
            limits: .init(
                memory: Validator.memory,
                // The extra seconds are for operations that SQLite does not stop by itself.
                processor: processor + 5,
                // Temporary data of a sort is rarely larger than the database.
                fileSize: max(64 << 20, 2 * size)))
    }

    func mapping(_ path: (String) -> String) -> Validation {
        var mapped = self
        (mapped.path, mapped.old) = (path(self.path), old.map(path))
        return mapped
    }

    static func json(of answer: ValidationReport) -> JSON { answer.json }
    static func answer(_ fields: Fields) throws -> ValidationReport { try ValidationReport(fields) }

    var failure: String { "\(name) cannot be checked" }
    var work: String { "the check" }
    var diskLimit: String { "twice the database's size" }
    var advice: Advice { "Nothing was changed. Publish the release again from an undamaged file." }
    var tookTooLong: MoultError {
        MoultError(
            .validation, .refused, what: failure, why: "the check took more than \(processor) s of CPU time",
            now: timeoutAdvice)
    }
    var timeoutAdvice: Advice { Self.moreTime }

    /// The advice for a check that took too long.
    package static let moreTime: Advice =
        "A hostile database can keep SQLite busy for days. If you trust this one, allow more time: --check-timeout SECONDS"
}
