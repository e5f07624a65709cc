package import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import MoultTrust

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

extension Validation {
    /// Examines the database in this process, with the limits that SQLite itself enforces.
    func perform() -> ValidationReport {
        var report = ValidationReport()
        do { try fill(&report) } catch { report.failure = MoultError(caught: error) }
        return report
    }

    private func fill(_ report: inout ValidationReport) throws {
        // The header is first read without locks and sidecars, because a connection to a database in WAL mode would create
        // sidecars.
        let header = try Connection.openGuarded(path: path, access: .immutable, deadline: Double(processor))
        report.isWAL = try header.header().isWAL
        try header.close()
        report.isOpen = report.isWAL
        if report.isWAL { return }
        let connection = try Connection.openGuarded(
            path: path, access: isWritable ? .readWrite : .immutable, deadline: Double(processor))
        report.isOpen = true
        if wantsIdentity { report.identity = try .init(of: connection) }
        let soundness = try soundness(connection)
        (report.findings, report.notChecked) = (soundness.findings, soundness.notChecked)
        for query in queries { report.answers.append(Self.answer(to: query, connection)) }
        try count(connection, &report.rows)
        try connection.close()
    }

    private func soundness(_ connection: Connection) throws -> Soundness {
        var soundness = Soundness()
        if depth != .header {
            soundness = try connection.soundness(full: depth == .full, limit: maxFindings)
        }
        if wantsForeignKeys, soundness.findings.isEmpty {
            do { soundness.findings = try connection.foreignKeyCheck(limit: maxFindings) } catch {
                guard AppNeed(error) != nil else { throw error }
                let references = try connection.references(limit: maxFindings)
                soundness.findings = references.findings
                soundness.notChecked += references.notChecked
            }
        }
        return soundness
    }

    private static func answer(to query: String, _ connection: Connection) -> ValidationReport.Answer {
        do { return .text(try connection.scalar(query).map(text) ?? "no row") } catch { return .none("\(error)") }
    }

    private static func text(_ value: Value) -> String {
        switch value {
        case .null: "NULL"
        case .integer(let number): String(number)
        case .real(let number): "\(number)"
        case .text(let text): text
        case .blob(let bytes): "\(bytes.count) bytes"
        }
    }

    private func count(_ connection: Connection, _ rows: inout [ValidationReport.Rows]) throws {
        guard let old, !tables.isEmpty else { return }
        let before = try Connection(path: old, access: .immutable)
        for table in tables {
            let after = try Self.count(table, connection)
            do {
                rows.append(.init(table: table, before: try Self.count(table, before), after: after))
            } catch let error as MoultError where error.code == .databaseCorrupt {
                // The old file may be damaged without a change of its metadata. The new one replaces it.
                rows.append(.init(table: table, before: nil, after: after))
            }
        }
        try before.close()
    }

    private static func count(_ table: String, _ connection: Connection) throws -> Int? {
        let there = try connection.int(
            "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?1 COLLATE NOCASE", [.text(table)])
        return there == 0 ? nil : Int(try connection.int("SELECT count(*) FROM \(quoteIdentifier(table))"))
    }
}

extension ValidationReport.Identity {
    fileprivate init(of connection: Connection) throws {
        let found = try Identity(of: connection)
        self.init(
            applicationID: Int(found.applicationID), userVersion: Int(found.userVersion),
            schema: "sha256:\(try SHA256.digest(of: Array(found.shape.canonicalText.utf8)).hex)")
    }
}

/// The findings about a database; the caller draws the conclusions.
package struct ValidationReport: Sendable, Equatable {
    package struct Identity: Sendable, Equatable {
        package var applicationID: Int
        package var userVersion: Int
        /// `sha256:` and the digest of the schema's canonical text.
        package var schema: String
    }

    package enum Answer: Sendable, Equatable {
        case text(String)
        /// The reason why the value is missing.
        case none(String)
    }

    /// The present and the previous number of rows in a table; nil if the table does not exist.
    package struct Rows: Sendable, Equatable {
        package var table: String
        package var before: Int?
        package var after: Int?

        package init(table: String, before: Int?, after: Int?) {
            (self.table, self.before, self.after) = (table, before, after)
        }
    }

    /// Whether the database could be opened.
    package var isOpen = false
    /// Whether the database is in WAL mode, in which SQLite needs sidecars; then it was not checked any further.
    package var isWAL = false
    package var identity: Identity?
    /// The faults of the database; empty if there are none, nil if unknown.
    package var findings: [String]?
    /// The parts that could not be checked, each with the reason: they need something that only the app has.
    package var notChecked: [String] = []
    package var answers: [Answer] = []
    package var rows: [Rows] = []
    /// Why the report is incomplete.
    package var failure: MoultError?

    package init() {}

    package static func == (one: Self, two: Self) -> Bool { one.json == two.json }
}

extension ValidationReport {
    /// The reply of a separate process.
    var json: JSON {
        .record([
            "isOpen": isOpen, "isWAL": isWAL,
            "identity": identity.map {
                JSON.record(["applicationID": $0.applicationID, "userVersion": $0.userVersion, "schema": $0.schema])
            },
            "findings": findings, "notChecked": notChecked.unlessEmpty,
            "answers": answers.map { answer -> JSON in
                switch answer {
                case .text(let text): .record(["text": text])
                case .none(let why): .record(["why": why])
                }
            },
            "rows": rows.map { JSON.record(["table": $0.table, "before": $0.before, "after": $0.after]) },
            "failure": failure?.report,
        ])
    }

    init(_ fields: Fields) throws {
        isOpen = try fields.optionalBool("isOpen") ?? false
        isWAL = try fields.optionalBool("isWAL") ?? false
        identity = try fields.optionalObject("identity").map { fields in
            try Identity(
                applicationID: fields.integer("applicationID"), userVersion: fields.integer("userVersion"),
                schema: fields.string("schema"))
        }
        findings = try fields.optionalStrings("findings")
        notChecked = try fields.optionalStrings("notChecked") ?? []
        answers = try fields.objects("answers").map { fields in
            if let text = try fields.optionalString("text") { return .text(text) }
            return .none(try fields.string("why"))
        }
        rows = try fields.objects("rows").map { fields in
            try Rows(
                table: fields.string("table"), before: fields.optionalCount("before"),
                after: fields.optionalCount("after"))
        }
        failure = try fields.optionalObject("failure").map { try MoultError(report: $0) }
    }
}

/// Converts errors for transfer between processes.
extension MoultError {
    /// The error that ended a validation, of any type.
    init(caught error: any Error) { self = error as? MoultError ?? MoultError(.validation, what: "\(error)") }

    var report: JSON {
        .record(["code": code.rawValue, "outcome": outcome.rawValue, "what": what, "why": why, "now": now?.json])
    }

    init(report fields: Fields) throws {
        self.init(
            Code(try fields.integer("code")),
            Outcome(rawValue: Int32(clamping: try fields.integer("outcome"))) ?? .failed,
            what: try fields.string("what"), why: try fields.optionalString("why"),
            now: Advice(json: fields.json("now")))
    }
}
