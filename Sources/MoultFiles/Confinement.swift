internal import CLinux
internal import MoultBasics
internal import MoultLibc

/// Restrictions on a process, in the kernel's format. They are set before its program starts or by the process itself, and
/// cannot be lifted.
///
/// `Guard` defines the allowed system calls and files.
package final class Confinement: Sendable {
    /// The descriptor of a Landlock ruleset, closed on deinitialization.
    private let ruleset: Int32?
    /// A seccomp filter, one instruction per element.
    private let filter: [UInt64]
    /// Limits for `setrlimit`.
    private let limits: [Limit]
    /// The capabilities to keep, one bit each.
    private let capabilities: UInt64

    package struct Limit: Sendable {
        package let resource: Int32
        package let soft: UInt64
        package let hard: UInt64
        package init(_ resource: Int32, soft: UInt64, hard: UInt64) {
            (self.resource, self.soft, self.hard) = (resource, soft, hard)
        }
    }

    package init(ruleset: Int32?, filter: [UInt64], limits: [Limit], capabilities: UInt64 = 0) {
        (self.ruleset, self.filter, self.limits, self.capabilities) = (ruleset, filter, limits, capabilities)
    }

    // Nothing was written through the descriptor of the ruleset, so closing it cannot lose data.
    deinit { if let ruleset { MoultLibc.close(ruleset) } }

    /// Passes this confinement to the closure, in its C representation.
    func with<R>(_ body: (moult_confinement) -> R) -> R {
        let limits = limits.map { moult_limit(resource: $0.resource, soft: $0.soft, hard: $0.hard) }
        return filter.withUnsafeBytes { filter in
            limits.withUnsafeBufferPointer { limits in
                body(
                    moult_confinement(
                        ruleset: ruleset ?? -1, filter: filter.baseAddress,
                        filter_count: Int32(self.filter.count), limits: limits.baseAddress,
                        limit_count: Int32(limits.count), capabilities: capabilities))
            }
        }
    }

    /// Whether this process can be confined: it must have a single thread, because a confinement does not apply to other
    /// threads that already exist.
    package static var isPossible: Bool { moult_is_single_threaded() != 0 }

    /// Confines this process, which must not have other threads yet.
    package func confineThisProcess() throws {
        guard Self.isPossible else {
            throw MoultError(.system, what: "cannot confine this process", why: "it already has other threads")
        }
        let (part, code) = with { how in withUnsafePointer(to: how) { (moult_confine($0), moult_errno()) } }
        if part != 0 { throw Errno(code).error("cannot confine this process (\(Subprocess.part(part)))") }
    }
}
