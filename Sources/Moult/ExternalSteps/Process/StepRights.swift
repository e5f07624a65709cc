internal import MoultBasics
package import MoultFiles

/// The rights of a step's process: read everything, write only to the granted places.
package struct StepRights: Sendable {
    /// Directories with all that is below, or single files.
    package var writable: [String]
    package var sockets: Profile.Sockets
    /// For a plan: it also locks no file, and the mounts are read-only where the system lets us.
    package var plans: Bool

    package init(writable: [String] = [], sockets: Profile.Sockets = .none, plans: Bool = false) {
        (self.writable, self.sockets, self.plans) = (writable, sockets, plans)
    }

    /// The protection in force, for the plan.
    static func level(mountsReadOnly: Bool) -> String {
        "planned read-only by force: Landlock \(Guard.level.landlock), seccomp"
            + (mountsReadOnly ? ", read-only mounts" : "")
    }

    /// The same in the kernel's words. No process leaves the group, by which all of them are killed.
    func enforced(scratch: String) throws -> Guard {
        guard Guard.level.landlock > 0, Guard.level.hasSeccomp else {
            throw MoultError(
                .stepTrust, .refused, what: "steps of others cannot be run here",
                why:
                    "this kernel has \(Guard.level.landlock > 0 ? "no seccomp" : "no Landlock"), which keeps them from "
                    + "changing what they must not",
                now: "Boot a kernel from 5.13 on with both enabled, or use releases without such steps.")
        }
        return Guard(.program(plans: plans, sockets: sockets), writing: writable + [scratch])
    }
}
