internal import CSeccomp

extension SystemCallRule {
    /// The number of the call on this processor; nil if the processor does not have the call.
    package var number: Int? { Self.number(of: name) }

    /// Returns the number of a call on this processor; nil if the processor does not have the call. libseccomp returns negative
    /// numbers for calls of other processors, and for unknown names.
    package static func number(of name: String) -> Int? {
        let number = seccomp_syscall_resolve_name(name)
        return number >= 0 ? Int(number) : nil
    }

    /// Whether any processor has a call of this name.
    package var isKnown: Bool { seccomp_syscall_resolve_name(name) != Self.unknown }

    private static let unknown: Int32 = -1
}
