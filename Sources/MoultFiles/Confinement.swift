internal import CLinux
internal import MoultBasics
internal import MoultLibc

/// Restrictions of a process, set before its program begins and for good, in the form that the kernel takes.
///
/// `MoultGuard` says which calls and files these are.
package final class Confinement: Sendable {
    /// A set of rules of Landlock; closed with this.
    private let ruleset: Int32?
    /// A filter of seccomp, an instruction each.
    private let filter: [UInt64]
    /// Limits of `setrlimit`.
    private let limits: [Limit]
    /// The capabilities that are kept, a bit each.
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

    // Nothing was written through it.
    deinit { if let ruleset { MoultLibc.close(ruleset) } }

    /// Lends it in C's form.
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

    /// Whether this process has a single thread. A confinement does not reach threads that exist already.
    package static var isPossible: Bool { moult_is_single_threaded() != 0 }

    /// Confines this very process, which must have no other thread yet.
    package func confineThisProcess() throws {
        guard Self.isPossible else {
            throw MoultError(.system, what: "cannot confine this process", why: "it has other threads already")
        }
        let (part, code) = with { how in withUnsafePointer(to: how) { (moult_confine($0), moult_errno()) } }
        if part != 0 { throw Errno(code).error("cannot confine this process (\(Subprocess.part(part)))") }
    }
}
