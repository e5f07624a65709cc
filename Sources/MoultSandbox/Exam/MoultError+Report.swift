internal import MoultBasics

/// How an error comes from one process to another.
extension MoultError {
    /// What ended an examination, whatever it was.
    init(caught error: any Error) {
        self = error as? MoultError ?? MoultError(.exam, what: "\(error)")
    }

    var report: JSON {
        .compact([
            "code": .size(code.rawValue), "outcome": .size(Int(outcome.rawValue)), "what": .string(what),
            "why": .optional(why), "now": .optional(now),
        ])
    }

    init(report fields: Fields) throws {
        self.init(
            Code(try fields.integer("code")),
            Outcome(rawValue: Int32(clamping: try fields.integer("outcome"))) ?? .failed,
            what: try fields.string("what"), why: try fields.optionalString("why"),
            now: try fields.optionalString("now"))
    }
}
