package import MoultBasics

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
            "isOpen": isOpen, "isWAL": isWAL, "identity": identity?.json, "findings": findings,
            "notChecked": notChecked.unlessEmpty, "answers": answers.map(\.json), "rows": rows.map(\.json),
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

extension ValidationReport.Identity {
    fileprivate var json: JSON {
        .record(["applicationID": applicationID, "userVersion": userVersion, "schema": schema])
    }
}

extension ValidationReport.Answer {
    fileprivate var json: JSON {
        switch self {
        case .text(let text): .record(["text": text])
        case .none(let why): .record(["why": why])
        }
    }
}

extension ValidationReport.Rows {
    fileprivate var json: JSON { .record(["table": table, "before": before, "after": after]) }
}

/// Converts errors for transfer between processes.
extension MoultError {
    /// The error that ended a validation, of any type.
    init(caught error: any Error) {
        self = error as? MoultError ?? MoultError(.validation, what: "\(error)")
    }

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
