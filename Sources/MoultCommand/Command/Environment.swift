internal import Glibc

/// The environment's variables; an empty one counts as not set.
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
