internal import CLinux
internal import MoultBasics
internal import MoultLibc

/// Limits for a process that handles untrusted input: the files that it reads and writes (Landlock), the system calls that
/// it makes (seccomp), and what it uses (rlimits). It has no capabilities and gets none, with one exception: `needsSearch`.
///
/// What of that the kernel can enforce says `Guard.level`. A process of root keeps the rights that uid 0 has as the owner
/// of files, and no more.
package struct Guard: Sendable {
    package enum Reading: Sendable, Equatable {
        /// Every file, and every program.
        case everything
        /// Files at or below these paths; no program at all.
        case only([String])
    }

    package var profile: Profile
    package var reading: Reading
    /// Directories beneath which it may make, change and remove files; or files that it may write to.
    package var writing: [String]
    package var limits: Limits

    /// Its resources; nil means no limit.
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

    package init(
        _ profile: Profile, reading: Reading = .everything, writing: [String] = [], limits: Limits = Limits()
    ) {
        (self.profile, self.reading, self.writing, self.limits) = (profile, reading, writing, limits)
    }

    /// Runs a program under this guard, as `Subprocess.run` does without one.
    package func run(
        _ arguments: [String], in directory: String? = nil, environment: [String: String] = [:], input: [UInt8] = [],
        wholeEnvironment: [String: String]? = nil, within time: Duration? = nil, limit: Int = 1 << 20,
        stop: () throws -> Void = {}
    ) throws -> Subprocess.Result {
        try Subprocess.run(
            arguments, in: directory, environment: environment, input: input, wholeEnvironment: wholeEnvironment,
            within: time, limit: limit, confinement: confinement(), stop: stop)
    }

    /// Confines this very process, for good; it must have no other thread yet.
    package func confineThisProcess() throws { try confinement().confineThisProcess() }

    /// The same for a program that is yet to be started.
    package func confinement() throws -> Confinement {
        let level = Self.level
        return Confinement(
            ruleset: level.landlock > 0
                ? try LandlockRules(version: level.landlock).ruleset(profile, reading, writing) : nil,
            filter: level.hasSeccomp
                ? try Filter.program(profile, landlock: level.landlock, process: getpid()) : [],
            limits: kernelLimits, capabilities: try needsSearch ? 1 << Self.search : 0)
    }

    /// CAP_DAC_READ_SEARCH: to read files, and to pass through directories, whatever their modes say.
    private static let search = 2

    /// Whether root examines the files of another user, which may be closed to all others. Landlock then still keeps
    /// the process from all files but the named ones; without Landlock it gets nothing.
    private var needsSearch: Bool {
        get throws {
            guard case .only(let paths) = reading, profile == .examiner, geteuid() == 0, Self.level.landlock > 0 else {
                return false
            }
            for path in paths + writing {
                var place = path
                while true {
                    if let owner = try Files.factsThroughLinks(place)?.owner, owner != 0 { return true }
                    if place == "/" || place == "." || place.isEmpty { break }
                    place = Files.directory(of: place)
                }
            }
            return false
        }
    }

    private var kernelLimits: [Confinement.Limit] {
        let all: [(Int32, Int?)] = [
            (Int32(RLIMIT_AS.rawValue), limits.memory), (Int32(RLIMIT_CPU.rawValue), limits.processor),
            (Int32(RLIMIT_FSIZE.rawValue), limits.fileSize),
            // A core file would copy what was in its memory to the disk.
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
    /// The features that this kernel can enforce; limits and the loss of capabilities are always in force.
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

    /// The features that the running kernel can enforce.
    package static let level = Level(
        landlock: max(0, Int(moult_landlock_version())), hasSeccomp: moult_has_seccomp() != 0)
}
