internal import CLinux
internal import MoultLibc

/// Environment variables; an empty variable counts as unset.
package struct Environment: Sendable {
    private let read: @Sendable (String) -> String?

    /// The variables of this process.
    package static let process = Environment { name in getenv(name).map { String(cString: $0) } }

    package init(_ variables: [String: String]) { read = { variables[$0] } }
    private init(read: @escaping @Sendable (String) -> String?) { self.read = read }

    package subscript(name: String) -> String? {
        guard let value = read(name), !value.isEmpty else { return nil }
        return value
    }
}

/// The arguments of the command line, without the program's name.
enum ProcessArguments {
    /// The arguments; nil for an argument that is not UTF-8, because repairing it would name a different file.
    static var all: [String?] {
        (1..<max(1, moult_argument_count())).map { index in
            moult_argument(index).flatMap { String(validatingCString: $0) }
        }
    }
}
