package import MoultBasics
internal import StepKit

/// What a step says of itself.
package struct StepDescription: Sendable, Equatable {
    package let name: String
    package let version: String
    package let summary: String
    /// The JSON Schema of its parameters.
    package let parameters: JSON?

    init(_ answer: JSON) throws {
        func wrong(_ why: String) -> StepConversation.Misbehaving { .init(.wrongAnswer(why)) }
        guard let major = answer["protocol"]?.integer else { throw wrong("\"protocol\" is missing") }
        guard major == 1 else { throw wrong("it speaks protocol \(major), and this moult speaks 1") }
        guard let name = answer["name"]?.string, let summary = answer["summary"]?.string else {
            throw wrong("\"name\" and \"summary\" must be texts")
        }
        if let fault = PlainName.fault(name) { throw wrong("its name \"\(visible(name))\" \(fault)") }
        guard answer["planIsPure"]?.bool == true else {
            throw wrong("it does not declare that its plan changes nothing (\"planIsPure\": true)")
        }
        self.name = name
        self.summary = visible(summary)
        version = visible(answer["version"]?.string ?? "0")
        parameters = answer["parameters"]
        if let parameters, let fault = ParameterSchema(parameters).fault { throw wrong("\"parameters\": \(fault)") }
    }
}
