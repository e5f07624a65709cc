internal import Synchronization

/// Validations run by several threads, and their results.
final class ValidationQueue: Sendable {
    private struct State {
        var next = 0
        var results: [Result<ValidationReport, any Error>?]
    }
    private let exams: [Validation]
    private let state: Mutex<State>

    init(_ exams: [Validation]) {
        self.exams = exams
        state = Mutex(State(results: .init(repeating: nil, count: exams.count)))
    }

    func next() -> (Int, Validation)? {
        state.withLock { state in
            guard state.next < exams.count else { return nil }
            state.next += 1
            return (state.next - 1, exams[state.next - 1])
        }
    }

    /// Stores a result. After a failure, no other validation starts.
    func put(_ result: Result<ValidationReport, any Error>, at number: Int) {
        state.withLock { state in
            state.results[number] = result
            if case .failure = result { state.next = exams.count }
        }
    }

    /// Returns all reports, or the first failure.
    func reports() throws -> [ValidationReport] {
        let results = state.withLock(\.results)
        for case .failure(let error)? in results { throw error }
        return try results.compactMap { try $0?.get() }
    }
}
