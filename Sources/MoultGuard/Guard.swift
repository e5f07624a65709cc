internal import CLinux
internal import Glibc
internal import MoultBasics
package import MoultFiles

/// What a process may do that works on what strangers made: read, write where it is told to, and no more than so much.
///
/// Whatever else it may do: it changes no owner, mode, time or attribute of any file, speaks to no network and to no
/// process besides its own, mounts nothing, and gets no rights that it did not have. What of that the kernel can enforce
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

    /// Runs a program under this guard, as `ChildProcess.run` does without one.
    package func run(
        _ arguments: [String], in directory: String? = nil, environment: [String: String] = [:], input: [UInt8] = [],
        within time: Duration? = nil, limit: Int = 1 << 20, stop: () throws -> Void = {}
    ) throws -> ChildProcess.Result {
        try ChildProcess.run(
            arguments, in: directory, environment: environment, input: input, within: time, limit: limit,
            confinement: confinement(alone: nil), stop: stop)
    }

    /// Puts this very process under the guard, for good; it must have no other thread yet.
    ///
    /// From here on it also starts no program, sends no signal, and makes no directory or link.
    package func confineThisProcess() throws {
        try confinement(alone: getpid()).confineThisProcess()
    }

    private func confinement(alone: pid_t?) throws -> Confinement {
        let level = Self.level
        return Confinement(
            ruleset: level.landlock > 0 ? try Rules(version: level.landlock).ruleset(reading, writing) : nil,
            filter: level.hasSeccomp ? Self.filter(alone: alone ?? 0) : [], limits: kernelLimits)
    }

    private static func filter(alone: pid_t) -> [UInt64] {
        [UInt64](unsafeUninitializedCapacity: Int(MOULT_FILTER_CAPACITY)) { buffer, count in
            count = buffer.withMemoryRebound(to: sock_filter.self) { Int(moult_filter($0.baseAddress, alone)) }
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
