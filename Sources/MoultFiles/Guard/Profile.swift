/// What kind of process is confined: the list of system calls that it may make.
///
/// Every other call fails: with ENOSYS if libraries fall back to another call then, as for each call that is newer than
/// this list, and else with EPERM.
package enum Profile: Sendable, Hashable {
    /// Works on databases, in a process of ours: it starts no program, has no network, and sends signals to itself only.
    case examiner
    /// Reads an archive that is open already, in a process of ours: it opens no file, starts no thread and no program, has no
    /// network, and sends signals to itself only.
    case archive
    /// Asks a web server, in a process of ours: it starts no program and writes no file.
    case fetch
    /// A program in any language, which may start others. One that only plans also locks no file.
    case program(plans: Bool = false, sockets: Sockets = .none)

    package enum Sockets: Sendable, Hashable {
        case none
        /// Those of this machine, by a name in the file system.
        case local
        /// Also those of the internet.
        case all
    }

    /// Whether it starts no other program.
    var isAlone: Bool {
        switch self {
        case .examiner, .archive, .fetch: true
        case .program: false
        }
    }

    var sockets: Sockets {
        switch self {
        case .examiner, .archive: .none
        case .fetch: .all
        case .program(_, let sockets): sockets
        }
    }
}

extension Profile {
    /// The first number of which this list knows nothing.
    package static let firstUnknown = 471

    /// Those that are not allowed, and for which libraries have another way if the kernel does not have them.
    ///
    /// clone3 and openat2 take their arguments in memory, where no filter sees them. The numbers without a name here are newer
    /// than libseccomp's list, and are the same on all processors: statmount, listmount, the three of lsm_*, mseal,
    /// getxattrat, listxattrat, file_getattr, listns.
    package static func notImplemented(landlock: Int) -> [Int] {
        let names = ["clone3", "cachestat"] + (landlock < 3 ? ["openat2"] : [])
        return names.compactMap(SystemCallRule.number(of:)) + [457, 458, 459, 460, 461, 462, 464, 465, 468, 470]
    }
}
