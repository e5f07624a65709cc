internal import MoultBasics

/// The ways in which a step can violate the protocol. Each is a failure, never an answer.
package enum Misbehaviour: Equatable, Sendable {
    case strayOutput(String)
    case strayReply(String)
    case lineTooLong
    case tooMuchOutput
    case silence(seconds: Int)
    case tooLong(seconds: Int)
    case exitWithoutResult
    case resultThenStatus(Int32)
    case twoResults
    case moreAfterResult(String)
    case signal(Int32)
    case status(Int32)
    case wrongAnswer(String)
    case outsideThePlan(String)

    /// A description of the violation.
    package var text: String {
        switch self {
        case .strayOutput(let line): "it printed something that is not a JSON object: \(Self.quoted(line))"
        case .strayReply(let line): "it printed a reply that the protocol does not define: \(Self.quoted(line))"
        case .lineTooLong: "it printed a line of more than 1 MiB"
        case .tooMuchOutput: "it printed more than 16 MiB"
        case .silence(let seconds): "it sent nothing for \(seconds) s, and was killed"
        case .tooLong(let seconds): "it took longer than \(seconds) s, and was killed"
        case .exitWithoutResult: "it ended with status 0 and without a result"
        case .resultThenStatus(let status): "it returned a result, but ended with status \(status)"
        case .twoResults: "it returned two results"
        case .moreAfterResult(let line): "it printed more after its result: \(Self.quoted(line))"
        case .signal(let signal): "it was killed by signal \(signal)"
        case .status(let status): "it ended with status \(status) and without a result"
        case .wrongAnswer(let why): "its result is invalid: \(why)"
        case .outsideThePlan(let what): "it exceeded its plan: \(what)"
        }
    }

    private static func quoted(_ line: String) -> String { "\"\(visible(String(line.prefix(120))))\"" }

    func error(_ step: String, _ message: String, said: String = "") -> MoultError {
        MoultError(
            .step, what: "the step \(step) failed during \(message)",
            why: said.isEmpty ? text : "\(text); on standard error: \(said)",
            now: "Report this to the author of the step. To test the step: \(moult: "steps", "test", "EXECUTABLE")")
    }
}
