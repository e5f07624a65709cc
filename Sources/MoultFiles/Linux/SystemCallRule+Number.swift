internal import CSeccomp

extension SystemCallRule {
    /// The number on this processor; nil for a call that it does not have.
    package var number: Int? { Self.number(of: name) }

    /// libseccomp gives negative numbers to calls of other processors, and to unknown names.
    package static func number(of name: String) -> Int? {
        let number = seccomp_syscall_resolve_name(name)
        return number >= 0 ? Int(number) : nil
    }

    /// Whether the name is one of a call on any processor.
    package var isKnown: Bool { seccomp_syscall_resolve_name(name) != Self.unknown }

    private static let unknown: Int32 = -1
}
