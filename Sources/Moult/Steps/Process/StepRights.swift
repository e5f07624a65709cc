internal import MoultBasics
internal import MoultFiles

/// The permissions of a step's process, which can read all files, and write only to the granted paths.
package struct StepRights: Sendable {
    /// Directories with all files in them, or single files.
    package var writable: [String] = []
    /// Paths that a step may read while it plans even if they are in a directory for temporary files.
    package var readable: [String] = []
    var sockets: Profile.Sockets = .none
    /// Whether the step is planning. If so, its process also cannot lock files, and mounts are read-only where the system
    /// allows that.
    package var plans = false

    /// Returns the protection in force, as shown in the plan.
    static func level(mountsReadOnly: Bool) -> String {
        "planned without write access, enforced by Landlock \(Guard.level.landlock)"
            + (mountsReadOnly ? ", seccomp and read-only mounts" : " and seccomp")
    }

    /// Returns these rights as kernel rules, under which no process can leave the step's process group, which is killed as a
    /// whole.
    func enforced(scratch: String) throws -> Guard {
        guard Guard.level.landlock > 0, Guard.level.hasSeccomp else {
            throw MoultError(
                .stepTrust, .refused, what: "external steps cannot be run on this machine",
                why:
                    "this kernel has \(Guard.level.landlock > 0 ? "no seccomp" : "no Landlock"), so moult cannot limit "
                    + "what such a step changes",
                now:
                    "Boot Linux 5.13 or later with Landlock and seccomp enabled, or use releases without external steps."
            )
        }
        return Guard(
            .program(plans: plans, sockets: sockets), reading: plans ? .persistent(also: readable) : .everything,
            writing: writable + [scratch])
    }
}
