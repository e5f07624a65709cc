internal import CLinux
internal import MoultBasics
internal import MoultLibc

/// The Landlock rules for reading and writing.
struct LandlockRules {
    /// The kernel's version of Landlock; rights of later versions cannot be requested.
    let version: Int

    /// The actions on files and directories, with the kernel's numbers.
    private struct Rights: OptionSet {
        let rawValue: UInt64

        static let execute = Self(rawValue: 1 << 0)
        static let writeFile = Self(rawValue: 1 << 1)
        static let readFile = Self(rawValue: 1 << 2)
        static let readDirectory = Self(rawValue: 1 << 3)
        /// Removing and creating files, directories, symlinks and pipes, but not devices and sockets.
        static let change = Self(rawValue: 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 12)
        static let sockets = Self(rawValue: 1 << 9)
        static let devices = Self(rawValue: 1 << 6 | 1 << 11)
        /// Moving files between directories: can be allowed since version 2, and is always denied before.
        static let refer = Self(rawValue: 1 << 13)
        /// Truncating files: checked since version 3.
        static let truncate = Self(rawValue: 1 << 14)
        /// Device-specific requests: checked since version 5.
        static let ioctl = Self(rawValue: 1 << 15)

        static let read: Self = [.readFile, .readDirectory]
        static let write: Self = [.writeFile, .change, .refer, .truncate, .ioctl]
        static let ofFiles: Self = [.execute, .writeFile, .readFile, .truncate, .ioctl]
    }

    /// All rights to change something, as far as the kernel's version of Landlock has them.
    private var changes: Rights {
        var rights: Rights = [.writeFile, .change, .sockets, .devices]
        if version >= 2 { rights.insert(.refer) }
        if version >= 3 { rights.insert(.truncate) }
        if version >= 5 { rights.insert(.ioctl) }
        return rights
    }

    /// Returns a descriptor of the ruleset; the caller must close it.
    func ruleset(_ profile: Profile, _ reading: Guard.Reading, _ writing: [String]) throws -> Int32 {
        // If the process may read and execute everything, Landlock need not check these actions.
        let handled =
            switch reading {
            case .everything: changes
            case .persistent: changes.union(.readFile)
            case .only: changes.union([.execute, .read])
            }
        let ruleset = moult_landlock_create(
            handled.rawValue, version >= 4 ? ports(profile) : 0, version >= 6 ? scopes(profile) : 0)
        guard ruleset >= 0 else { throw Errno(moult_errno()).error("cannot create Landlock rules") }
        func allow(_ rights: Rights, at path: String, isResolved: Bool = false) throws {
            try self.allow(rights.intersection(handled), at: path, ruleset, isResolved)
        }
        do {
            switch reading {
            case .everything: break
            case .persistent(let also):
                // The directories, or the paths, may not exist.
                for path in try Self.persistent() + also where try Files.factsThroughLinks(path) != nil {
                    try allow(.readFile, at: path)
                }
            case .only(let paths): for path in paths { try allow(.read, at: path) }
            }
            let named: Rights = profile.sockets == .none || profile == .fetch ? [] : .sockets
            // The caller has resolved these paths; a link that was put there since leads elsewhere.
            for path in writing { try allow([.execute, .read, .write, named], at: path, isResolved: true) }
            // Programs write unwanted output to /dev/null.
            if case .only = reading {} else { try allow([.writeFile, .truncate, .ioctl], at: "/dev/null") }
            return ruleset
        } catch {
            MoultLibc.close(ruleset)
            throw error
        }
    }

    /// Returns the actions on TCP ports to deny: binding (1) and connecting (2).
    private func ports(_ profile: Profile) -> UInt64 {
        if profile == .fetch { return 1 }
        return profile.sockets == .all ? 0 : 3
    }

    /// Returns the scopes to restrict to the process and its children: abstract sockets (1) and signals (2).
    private func scopes(_ profile: Profile) -> UInt64 { profile.sockets == .all && profile != .fetch ? 2 : 3 }

    /// Returns the directories and devices in which no running program keeps pipes, because other directories exist for these.
    private static func persistent() throws -> [String] {
        func entries(_ directory: String, except names: Set<String>) throws -> [String] {
            try Files.list(directory).filter { !names.contains($0) }.map {
                "\(directory == "/" ? "" : directory)/\($0)"
            }
            .filter { try Files.facts($0).map { [.file, .directory].contains($0.kind) } ?? false }
        }
        return try entries("/", except: ["dev", "run", "tmp", "var"]) + entries("/var", except: ["lock", "run", "tmp"])
            + ["null", "zero", "full", "random", "urandom"].map { "/dev/\($0)" }
    }

    private func allow(_ rights: Rights, at path: String, _ ruleset: Int32, _ isResolved: Bool) throws {
        let flags = SystemFeatures.pathOnly | (isResolved ? O_NOFOLLOW : 0)
        let number = moult_openat(AT_FDCWD, path, flags | O_CLOEXEC, 0)
        guard number >= 0 else { throw Errno(moult_errno()).error("cannot open \(path)") }
        let place = Descriptor(owning: number, path)
        let kind = try place.facts().kind
        if kind == .link { throw Errno.loop.error("cannot allow a process to write to \(path)") }
        let rights = kind == .directory ? rights : rights.intersection(.ofFiles)
        guard moult_landlock_allow(ruleset, place.number, rights.rawValue) == 0 else {
            throw Errno(moult_errno()).error("cannot create a Landlock rule for \(path)")
        }
    }
}
