internal import CLinux
internal import MoultBasics
internal import MoultLibc

/// Limits for a process that handles untrusted input: the files that it reads and writes (Landlock), the system calls that it
/// makes (seccomp), and its resources (rlimits). The process has no capabilities and gains none, with one exception:
/// `needsSearch`.
///
/// `Guard.level` reports which of these the kernel can enforce. A root process keeps only the permissions that uid 0 has as the
/// owner of files.
package struct Guard: Sendable {
    package enum Reading: Sendable, Equatable {
        /// Allows reading every file and executing every program.
        case everything
        /// Allows reading every file, but in the directories in which running programs keep pipes and temporary files only those at
        /// or below these paths: a process that opens a pipe takes data from the program that it is for.
        case persistent(also: [String])
        /// Allows reading files at or below these paths, but not executing them.
        case only([String])
    }

    package var profile: Profile
    package var reading: Reading
    /// Directories in which the process may create, change and remove files, or files that it may write to.
    package var writing: [String]
    package var limits: Limits

    /// Resource limits; nil means no limit.
    package struct Limits: Sendable, Equatable {
        /// Address space in bytes.
        package var memory: Int?
        /// Memory that the process allocates, in bytes.
        package var data: Int?
        /// Processor time in seconds.
        package var processor: Int?
        /// The size of any file that the process writes, in bytes.
        package var fileSize: Int?

        package init(memory: Int? = nil, data: Int? = nil, processor: Int? = nil, fileSize: Int? = nil) {
            (self.memory, self.data, self.processor, self.fileSize) = (memory, data, processor, fileSize)
        }
    }

    package init(
        _ profile: Profile, reading: Reading = .everything, writing: [String] = [], limits: Limits = Limits()
    ) {
        (self.profile, self.reading, self.writing, self.limits) = (profile, reading, writing, limits)
    }

    /// Runs a program under this guard, like `Subprocess.run`.
    package func run(
        _ arguments: [String], in directory: String? = nil, environment: [String: String] = [:], input: [UInt8] = [],
        wholeEnvironment: [String: String]? = nil, within time: Duration? = nil, limit: Int = 1 << 20,
        stop: () throws -> Void = {}
    ) throws -> Subprocess.Result {
        try Subprocess.run(
            arguments, in: directory, environment: environment, input: input, wholeEnvironment: wholeEnvironment,
            within: time, limit: limit, confinement: confinement(), stop: stop)
    }

    /// Confines this process permanently; it must not have other threads yet.
    package func confineThisProcess() throws { try confinement().confineThisProcess() }

    /// Returns the confinement for a program that is not started yet.
    package func confinement() throws -> Confinement {
        let level = Self.level
        return Confinement(
            ruleset: level.landlock > 0
                ? try LandlockRules(version: level.landlock).ruleset(profile, reading, writing) : nil,
            filter: level.hasSeccomp
                ? try Filter.program(profile, landlock: level.landlock, process: getpid()) : [],
            limits: kernelLimits, capabilities: try needsSearch ? 1 << Self.search : 0)
    }

    /// CAP_DAC_READ_SEARCH, which allows reading files and traversing directories regardless of their modes.
    private static let search = 2

    /// Whether the process keeps this capability: a root process that examines another user's files may not be able to read
    /// them without it. Landlock still denies access to all other files; without Landlock, the process does not keep the
    /// capability.
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
            (Int32(RLIMIT_AS.rawValue), limits.memory), (Int32(RLIMIT_DATA.rawValue), limits.data),
            (Int32(RLIMIT_CPU.rawValue), limits.processor), (Int32(RLIMIT_FSIZE.rawValue), limits.fileSize),
            // A core dump would write the process's memory to disk.
            (Int32(RLIMIT_CORE.rawValue), 0),
        ]
        return all.compactMap { resource, value in
            guard let value else { return nil }
            // The hard limit is slightly higher, so that the terminating signal shows the cause: first SIGXCPU, and only then
            // SIGKILL.
            return .init(resource, soft: UInt64(max(0, value)), hard: UInt64(max(0, value)) + 1)
        }
    }
}

extension Guard {
    /// The features that this kernel can enforce; resource limits and the loss of capabilities always apply.
    package struct Level: Sendable, Equatable, CustomStringConvertible {
        /// The version of Landlock; 0 if the kernel has none. Only file modes then limit which files the process can read and
        /// write.
        package let landlock: Int
        /// If false, the process can make all system calls that Landlock does not restrict.
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

/// Restrictions on a process, in the kernel's format. They are set before its program starts or by the process itself, and
/// cannot be lifted.
///
/// `Guard` defines the allowed system calls and files.
package final class Confinement: Sendable {
    /// The descriptor of a Landlock ruleset, closed on deinitialization.
    private let ruleset: Int32?
    /// A seccomp filter, one instruction per element.
    private let filter: [UInt64]
    /// Limits for `setrlimit`.
    private let limits: [Limit]
    /// The capabilities to keep, one bit each.
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

    // Nothing was written through the descriptor of the ruleset, so closing it cannot lose data.
    deinit { if let ruleset { MoultLibc.close(ruleset) } }

    /// Passes this confinement to the closure, in its C representation.
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

    /// Whether this process can be confined: it must have a single thread, because a confinement does not apply to other
    /// threads that already exist.
    package static var isPossible: Bool { moult_is_single_threaded() != 0 }

    /// Confines this process, which must not have other threads yet.
    package func confineThisProcess() throws {
        guard Self.isPossible else {
            throw MoultError(.system, what: "cannot confine this process", why: "it already has other threads")
        }
        let (part, code) = with { how in withUnsafePointer(to: how) { (moult_confine($0), moult_errno()) } }
        if part != 0 { throw Errno(code).error("cannot confine this process (\(Subprocess.part(part)))") }
    }
}
