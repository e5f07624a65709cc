internal import MoultBasics

/// Passes warnings on, up to a limit for each kind.
final class WarningLimiter {
    /// The kinds of warnings, each with its own limit.
    enum Kind: Hashable {
        case note, doubleQuotes, unrepeatable, failedStatement
        case fewColumns, manyColumns, emptyField, unescaped, unterminated, nul, encoding, failedRow

        static let ofScripts: [Kind] = [.note, .doubleQuotes, .unrepeatable, .failedStatement]
        static let ofRows: [Kind] = [
            .fewColumns, .manyColumns, .emptyField, .unescaped, .unterminated, .nul, .encoding, .failedRow,
        ]
    }

    private static let limit = 100
    private let sink: (BuildWarning) -> Void
    private var counts: [Kind: Int] = [:]
    private(set) var total = 0

    init(_ sink: @escaping (BuildWarning) -> Void) { self.sink = sink }

    func add(_ kind: Kind, _ place: Place?, _ text: @autoclosure () -> String) {
        let count = counts[kind, default: 0] + 1
        counts[kind] = count
        if count <= Self.limit { pass(BuildWarning(place: place, text: text())) }
    }

    /// At the end of a file, reports how many warnings of these kinds were suppressed, and resets the counts.
    func flush(_ kinds: [Kind], of file: String) {
        let held = kinds.reduce(0) { $0 + max(0, (counts.removeValue(forKey: $1) ?? 0) - Self.limit) }
        if held > 0 { pass(BuildWarning(place: nil, text: "\(file): \(counted(held, "more warning")) of these kinds")) }
    }

    private func pass(_ warning: BuildWarning) {
        total += 1
        sink(warning)
    }
}
