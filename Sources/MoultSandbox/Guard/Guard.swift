internal import CLinux
internal import Glibc
internal import MoultBasics
package import MoultFiles

/// What a process may do that works on what strangers made: read, write where it is told to, and no more than so much.
///
/// Whatever else it may do: it changes no owner, mode, time or attribute of any file, speaks to no network, unless
/// `sockets` says so, and to no process besides its own, mounts nothing, and gets no rights that it did not have. What of that the kernel can enforce
/// says `Guard.level`.
package struct Guard: Sendable {
    package enum Reading: Sendable, Equatable {
        /// Every file, and every program.
        case everything
        /// What lies at or beneath these paths; no program at all.
        case only([String])
    }

    package var reading: Reading
    /// Directories beneath which it may make, change and remove files; or files that it may write to.
    package var writing: [String]
    package var limits: Limits
    package var sockets = Sockets.none
    package var besides: ExtraDenials = []

    package enum Sockets: Int32, Sendable {
        case none
        /// Those of this machine, by a name in the file system.
        case local
        case all
    }

    /// What a process that may start others can be kept from besides.
    package struct ExtraDenials: OptionSet, Sendable {
        package let rawValue: Int32
        package init(rawValue: Int32) { self.rawValue = rawValue }

        /// To leave its process group, by which all of it is ended.
        package static let leaving = Self(rawValue: Int32(MOULT_DENY_LEAVING))
        /// To lock files, and to make what lasts and is no file.
        package static let lasting = Self(rawValue: Int32(MOULT_DENY_LASTING))
    }

    /// What it may use; nil is no limit.
    package struct Limits: Sendable, Equatable {
        /// Bytes of address space.
        package var memory: Int?
        /// Seconds of the processor.
        package var processor: Int?
        /// Bytes of any file that it writes.
        package var fileSize: Int?

        package init(memory: Int? = nil, processor: Int? = nil, fileSize: Int? = nil) {
            (self.memory, self.processor, self.fileSize) = (memory, processor, fileSize)
        }
    }

    package init(reading: Reading = .everything, writing: [String] = [], limits: Limits = Limits()) {
        (self.reading, self.writing, self.limits) = (reading, writing, limits)
    }

    /// Runs a program under this guard, as `Subprocess.run` does without one.
    package func run(
        _ arguments: [String], in directory: String? = nil, environment: [String: String] = [:], input: [UInt8] = [],
        within time: Duration? = nil, limit: Int = 1 << 20, stop: () throws -> Void = {}
    ) throws -> Subprocess.Result {
        try Subprocess.run(
            arguments, in: directory, environment: environment, input: input, within: time, limit: limit,
            confinement: confinement(), stop: stop)
    }

    /// Puts this very process under the guard, for good; it must have no other thread yet.
    ///
    /// From here on it also starts no program, sends no signal, and makes no directory or link.
    package func confineThisProcess() throws {
        try confinement(alone: getpid()).confineThisProcess()
    }

    /// The same for a program that is yet to be started; `alone` is the number of a process that starts none.
    package func confinement(alone: Int32? = nil) throws -> Confinement {
        let level = Self.level
        return Confinement(
            ruleset: level.landlock > 0 ? try Rules(version: level.landlock).ruleset(reading, writing, sockets) : nil,
            filter: level.hasSeccomp ? filter(alone: alone) : [],
            limits: kernelLimits)
    }

    /// The program of seccomp, an instruction each.
    private func filter(alone: Int32?) -> [UInt64] {
        let lists = besides.rawValue | (alone == nil ? 0 : Int32(MOULT_DENY_ALONE))
        return [UInt64](unsafeUninitializedCapacity: Int(MOULT_FILTER_CAPACITY)) { buffer, count in
            count = buffer.withMemoryRebound(to: sock_filter.self) {
                Int(moult_filter($0.baseAddress, lists, sockets.rawValue, alone ?? 0))
            }
        }
    }

    private var kernelLimits: [Confinement.Limit] {
        let all: [(Int32, Int?)] = [
            (Int32(RLIMIT_AS.rawValue), limits.memory), (Int32(RLIMIT_CPU.rawValue), limits.processor),
            (Int32(RLIMIT_FSIZE.rawValue), limits.fileSize),
            // What was in its memory is nobody else's business.
            (Int32(RLIMIT_CORE.rawValue), 0),
        ]
        return all.compactMap { resource, value in
            guard let value else { return nil }
            // A little more, so that the signal that ends it says why: SIGXCPU, and only then SIGKILL.
            return .init(resource, soft: UInt64(max(0, value)), hard: UInt64(max(0, value)) + 1)
        }
    }
}

extension Guard {
    /// From here on this process ends when the one that started it does.
    package static func endWithParent() throws {
        guard moult_syscall(Int(SYS_prctl), Int(PR_SET_PDEATHSIG), Int(SIGKILL), 0, 0) == 0 else {
            throw Errno(moult_errno()).error("cannot end with the process that started this one")
        }
    }
}

extension Guard {
    /// What this kernel can enforce; limits and the loss of privileges there are always.
    package struct Level: Sendable, Equatable, CustomStringConvertible {
        /// The version of Landlock, 0 without it: then any file can be read, and written as far as its mode allows.
        package let landlock: Int
        /// Without it, the system calls that Landlock does not look at can be made.
        package let hasSeccomp: Bool

        init(landlock: Int, hasSeccomp: Bool) { (self.landlock, self.hasSeccomp) = (landlock, hasSeccomp) }

        package var description: String {
            switch (landlock > 0, hasSeccomp) {
            case (true, true): "Landlock ABI \(landlock), seccomp"
            case (true, false): "Landlock ABI \(landlock) only: this kernel has no seccomp"
            case (false, true): "seccomp only: this kernel has no Landlock"
            case (false, false): "limits only: this kernel has neither Landlock nor seccomp"
            }
        }
    }

    /// What the kernel that runs now can enforce.
    package static let level = Level(
        landlock: max(0, Int(moult_landlock_version())), hasSeccomp: moult_has_seccomp() != 0)
}
