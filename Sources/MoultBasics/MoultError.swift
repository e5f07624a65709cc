/// What went wrong, in three parts that a person can act on: what happened, why, and what to do now.
///
///     do { try await store.update(to: manifest) } catch let error as MoultError where error.code == .inUse {
///         print(error.what, error.why ?? "", error.now ?? "")
///     }
public struct MoultError: Error, Sendable {
    /// How the command ends for this error, and so what a script may conclude from it.
    public enum Outcome: Int32, Sendable, CaseIterable {
        /// Failed before anything was changed.
        case failed = 1
        /// Refused: by a constraint, a hold, a check of the data, or the change budget.
        case refused = 3
        /// A saved plan no longer fits what is there.
        case stale = 4
        /// Failed after the decision and undone: the old data is intact.
        case undone = 5
        /// Could not be undone or finished: an operator is needed.
        case stuck = 6
        /// Wrong usage of the command.
        case usage = 64
        /// Try later: another update is running, or a program has a database open.
        case busy = 75
    }

    /// What kind of error this is, stable over versions; numbered by phase, for humans who match on it.
    ///
    /// 1xx basics and files, 2xx manifest and trust, 3xx archive, 4xx SQLite, 5xx planning, 6xx prepare,
    /// 7xx apply, 8xx settling and store, 9xx command.
    public struct Code: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        public let rawValue: Int
        public init(rawValue: Int) { self.rawValue = rawValue }
        /// The code with this number.
        public init(_ number: Int) { self.rawValue = number }
        public var description: String { "E\(rawValue)" }
    }

    /// What kind of error it is.
    public var code: Code
    /// The consequence for the store.
    public var outcome: Outcome
    /// What happened, with the path and the names; no full stop at the end.
    public var what: String { didSet { what = readable(what) } }
    /// Why it happened, as far as known.
    public var why: String? { didSet { why = why.map(readable) } }
    /// The next step: a command if possible.
    public var now: String? { didSet { now = now.map(readable) } }
    /// The error below this one.
    public var cause: (any Error)?

    /// An error; `what` and `why` end without a full stop, `now` is a command or a sentence. What they quote is shortened
    /// here, so that no message, record or reply is longer than a page.
    public init(
        _ code: Code, _ outcome: Outcome = .failed, what: String, why: String? = nil, now: String? = nil,
        cause: (any Error)? = nil
    ) {
        self.code = code
        self.outcome = outcome
        self.what = readable(what)
        self.why = why.map(readable)
        self.now = now.map(readable)
        self.cause = cause
    }
}

extension MoultError: CustomStringConvertible {
    /// One line: what, why, what now.
    public var description: String {
        var line = what
        if let why { line += ": \(why)" }
        if let now { line += ". \(now)" }
        return line
    }

    /// This error and all that caused it, the outermost first.
    public var chain: [any Error] {
        var errors: [any Error] = [self]
        var next = cause
        while let error = next {
            errors.append(error)
            next = (error as? MoultError)?.cause
        }
        return errors
    }
}

extension MoultError.Code {
    /// A system call failed.
    public static let system = Self(100)
    /// Invalid JSON, or JSON with an unexpected structure.
    public static let json = Self(110)
    /// An invalid or contradictory feed.
    package static let feed = Self(260)
}
