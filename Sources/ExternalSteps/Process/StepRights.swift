internal import MoultBasics
internal import MoultSandbox

/// What a process of a step may do: read everything, write where it is granted, and nothing beside.
package struct StepRights: Sendable {
    /// Directories with all that is below, or single files.
    package var writable: [String]
    package var sockets: Sockets
    /// For a plan: also nothing that is not a file may change, and the mounts are read-only where the system lets us.
    package var plans: Bool

    package enum Sockets: Sendable { case none, local, all }

    package init(writable: [String] = [], sockets: Sockets = .none, plans: Bool = false) {
        (self.writable, self.sockets, self.plans) = (writable, sockets, plans)
    }

    /// What is in force, for the plan.
    static func level(mountsReadOnly: Bool) -> String {
        "planned read-only by force: Landlock \(Guard.level.landlock), seccomp"
            + (mountsReadOnly ? ", read-only mounts" : "")
    }

    /// The same in the kernel's words. Nobody leaves the process group, by which all of it is ended.
    func enforced(scratch: String) throws -> Guard {
        guard Guard.level.landlock > 0, Guard.level.hasSeccomp else {
            throw MoultError(
                .stepTrust, .refused, what: "steps of others cannot be run here",
                why:
                    "this kernel has \(Guard.level.landlock > 0 ? "no seccomp" : "no Landlock"), which keeps them from "
                    + "changing what they must not",
                now: "Boot a kernel from 5.13 on with both enabled, or use releases without such steps.")
        }
        var how = Guard(writing: writable + [scratch])
        how.sockets =
            switch sockets {
            case .none: .none
            case .local: .local
            case .all: .all
            }
        how.besides = plans ? [.leaving, .lasting] : .leaving
        return how
    }
}
