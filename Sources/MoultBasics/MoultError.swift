/// An error in three parts: what failed, why, and what to do next.
///
///     do { try await store.update(to: manifest) } catch let error as MoultError where error.code == .inUse {
///         print(error.what, error.why ?? "", error.now?.description ?? "")
///     }
public struct MoultError: Error, Sendable {
    /// The consequence of the error, and the exit status of the command.
    public enum Outcome: Int32, Sendable, CaseIterable {
        /// The operation failed before it changed anything.
        case failed = 1
        /// The operation was refused because of a constraint, a hold, a data check, or the change budget.
        case refused = 3
        /// A saved plan no longer matches the store.
        case stale = 4
        /// The operation failed after the decision to install and was undone; the old data is intact.
        case undone = 5
        /// The operation could be neither undone nor finished; an operator is needed.
        case stuck = 6
        /// The command was used incorrectly.
        case usage = 64
        /// Try again later: another update is running, or a program has a database open.
        case busy = 75
    }

    /// The kind of error, stable across versions. Numbers are grouped by phase:
    ///
    /// 1xx basics and files, 2xx manifest and trust, 3xx archive, 4xx SQLite, 5xx planning, 6xx prepare,
    /// 7xx apply, 8xx recovery and store, 9xx command.
    public struct Code: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        public let rawValue: Int
        public init(rawValue: Int) { self.rawValue = rawValue }
        /// Creates the code with this number.
        public init(_ number: Int) { self.rawValue = number }
        public var description: String { "E\(rawValue)" }
    }

    /// The kind of error.
    public var code: Code
    /// The consequence for the store.
    public var outcome: Outcome
    /// What failed, with path and names; without a full stop.
    public var what: String { didSet { what = readable(what) } }
    /// The cause, if known.
    public var why: String? { didSet { why = why.map(readable) } }
    /// The next step, a command if possible.
    public var now: Advice? { didSet { now = now?.readable } }
    /// The underlying error.
    public var cause: (any Error)?

    /// Creates an error. `what` and `why` end without a full stop; `now` is a command or a sentence. Long quotations are
    /// shortened, which limits the size of messages, records and replies.
    public init(
        _ code: Code, _ outcome: Outcome = .failed, what: String, why: String? = nil, now: Advice? = nil,
        cause: (any Error)? = nil
    ) {
        (self.code, self.outcome, self.cause) = (code, outcome, cause)
        (self.what, self.why, self.now) = (readable(what), why.map(readable), now?.readable)
    }
}

extension MoultError: CustomStringConvertible {
    /// What failed, why, and the next step, on one line.
    public var description: String { now.map { "\(problem). \($0)" } ?? problem }

    /// What failed and why, on one line.
    package var problem: String { why.map { "\(what): \($0)" } ?? what }

    /// This error and its causes, outermost first.
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

extension Error {
    /// What failed and why, on one line; for an error of another kind, its text.
    package var problem: String { (self as? MoultError)?.problem ?? "\(self)" }
}
