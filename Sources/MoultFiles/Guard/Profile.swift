/// A kind of sandboxed process, which determines the system calls that it may make.
///
/// Every other call fails with ENOSYS if libraries then fall back to another call, or if the call is newer than this list;
/// otherwise with EPERM.
package enum Profile: Sendable, Hashable {
    /// A moult process that works on databases: it starts no program, has no network, and sends signals only to itself.
    case examiner
    /// A moult process that reads an open archive: it opens no file, starts no thread and no program, has no network, and sends
    /// signals only to itself.
    case archive
    /// A moult process that queries a web server: it starts no program and writes no file.
    case fetch
    /// A program in any language, which may start other programs. With `plans`, it cannot lock files.
    case program(plans: Bool = false, sockets: Sockets = .none)

    package enum Sockets: Sendable, Hashable {
        case none
        /// Local sockets that have a name in the file system.
        case local
        /// Also Internet sockets.
        case all
    }

    /// Whether the process is not allowed to start other programs.
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
    /// The lowest number of the system calls that are newer than this list.
    package static let firstUnknown = 471

    /// Returns the calls that fail with ENOSYS, because libraries use an alternative if the kernel lacks them.
    ///
    /// clone3 and openat2 take their arguments in memory, which a filter cannot inspect: with openat2, a program could create a
    /// file that runs with the rights of its owner. The numbers without names here are
    /// newer than libseccomp's list, and the same on all processors: statmount, listmount, the three of lsm_*, mseal,
    /// getxattrat, listxattrat, file_getattr, listns.
    package func notImplemented(landlock: Int) -> [Int] {
        let names = ["clone3", "cachestat"] + (landlock < 3 || !isAlone ? ["openat2"] : [])
        return names.compactMap(SystemCallRule.number(of:)) + [457, 458, 459, 460, 461, 462, 464, 465, 468, 470]
    }
}
