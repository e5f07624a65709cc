internal import CLinux
internal import MoultBasics
internal import MoultFiles

/// Environment variables; an empty variable counts as unset.
struct Environment: Sendable {
    /// Nil for the variables of this process.
    private let variables: [String: String]?

    static let process = Environment(variables: nil)

    init(_ variables: [String: String]) { self.variables = variables }
    private init(variables: [String: String]?) { self.variables = variables }

    /// Returns the value of a variable that is not used as a path; nil if it is not valid UTF-8.
    subscript(name: String) -> String? {
        guard let variables else { return ProcessEnvironment.word(name) }
        return variables[name].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Returns the value of a variable that is used as a path; throws if it is not valid UTF-8.
    func path(_ name: String) throws(MoultError) -> String? {
        if variables == nil { return try ProcessEnvironment.value(name) }
        return self[name]
    }
}

/// The arguments of the command line, without the program's name.
enum ProcessArguments {
    /// The arguments; nil for an argument that is not UTF-8, because repairing it would name a different file.
    static var all: [String?] {
        (1..<max(1, moult_argument_count())).map { index in moult_argument(index).flatMap { OutsideText.valid($0) } }
    }
}
