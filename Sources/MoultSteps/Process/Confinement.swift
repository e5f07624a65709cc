internal import CLinux
internal import Glibc
internal import MoultBasics
internal import MoultFiles

/// What a process of a step may do: read everything, write where it is granted, and nothing beside.
package struct Confinement: Sendable {
    package enum Sockets: Int32, Sendable { case none, local, all }

    /// Directories with all that is below, or single files.
    package var writable: [String]
    package var sockets: Sockets
    /// For a plan: also nothing that is not a file may change, and the mounts are read-only where the system lets us.
    package var plans: Bool

    package init(writable: [String] = [], sockets: Sockets = .none, plans: Bool = false) {
        (self.writable, self.sockets, self.plans) = (writable, sockets, plans)
    }

    /// The version of Landlock; nil where the kernel has none, and then no step is run.
    static var landlock: Int? {
        let version = moult_landlock_version()
        return version > 0 ? Int(version) : nil
    }

    /// What is in force, for the plan.
    static func level(_ version: Int, mountsReadOnly: Bool) -> String {
        "planned read-only by force: Landlock \(version), seccomp" + (mountsReadOnly ? ", read-only mounts" : "")
    }

    /// What the kernel is to refuse below any path that is not granted: everything that writes.
    private static func handled(_ version: Int) -> UInt64 {
        // 1 write, 4-12 remove and make, 13 move between directories, 14 truncate, 15 control devices
        var bits: UInt64 = 1 << 1
        for bit in 4...12 { bits |= 1 << UInt64(bit) }
        if version >= 2 { bits |= 1 << 13 }
        if version >= 3 { bits |= 1 << 14 }
        if version >= 5 { bits |= 1 << 15 }
        return bits
    }

    /// Devices, sockets and pipes by name are never made.
    private static let special: UInt64 = 1 << 6 | 1 << 11

    /// Makes the set of rules; the descriptor is the caller's to close.
    func ruleset(scratch: String) throws -> Int32 {
        guard let version = Self.landlock else {
            throw MoultError(
                .stepTrust, .refused, what: "steps of others cannot be run here",
                why: "this kernel has no Landlock, which keeps them from changing what they must not",
                now: "Boot a kernel from 5.13 on with Landlock enabled, or use releases without such steps.")
        }
        let handled = Self.handled(version)
        let network: UInt64 = version >= 4 && sockets != .all ? 3 : 0
        // Abstract sockets, and signals to processes outside.
        let scopes: UInt64 = version >= 6 ? (sockets == .all ? 2 : 3) : 0
        let ruleset = moult_landlock_create(handled, network, scopes)
        guard ruleset >= 0 else { throw Errno(moult_errno()).error("cannot confine a step") }
        do {
            for path in writable + [scratch] { try allow(path, handled & ~Self.special, in: ruleset) }
            // Shells write there.
            try allow("/dev/null", handled, in: ruleset)
        } catch {
            Glibc.close(ruleset)
            throw error
        }
        return ruleset
    }

    private func allow(_ path: String, _ rights: UInt64, in ruleset: Int32) throws {
        let file = moult_open_path(path)
        guard file >= 0 else { throw Errno(moult_errno()).error("cannot grant \(path) to a step") }
        defer { Glibc.close(file) }
        let isDirectory = try Files.factsThroughLinks(path)?.kind == .directory
        // Only these mean anything for what is no directory.
        let ofFiles: UInt64 = 1 << 1 | 1 << 14 | 1 << 15
        guard moult_landlock_allow(ruleset, file, isDirectory ? rights : rights & ofFiles) == 0 else {
            throw Errno(moult_errno()).error("cannot grant \(path) to a step")
        }
    }
}
