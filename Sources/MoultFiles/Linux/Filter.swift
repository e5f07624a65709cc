internal import CLinux
internal import CSeccomp
internal import MoultBasics
internal import MoultLibc
internal import Synchronization

/// The program of seccomp for a profile, an instruction each, made by libseccomp and kept for the next process.
package enum Filter {
    private struct Key: Hashable {
        let profile: Profile
        let landlock: Int
        let process: Int32
    }

    private static let made = Mutex<[Key: [UInt64]]>([:])

    package static func program(_ profile: Profile, landlock: Int, process: Int32) throws -> [UInt64] {
        let key = Key(profile: profile, landlock: landlock, process: profile.isAlone ? process : 0)
        if let program = made.withLock({ $0[key] }) { return program }
        let program = try compile(profile, landlock, key.process)
        made.withLock { $0[key] = program }
        return program
    }

    private static func compile(_ profile: Profile, _ landlock: Int, _ process: Int32) throws -> [UInt64] {
        guard let context = seccomp_init(moult_seccomp_error(UInt16(EPERM))) else {
            throw MoultError(.system, what: "cannot make a filter of system calls", why: "libseccomp has no memory")
        }
        defer { seccomp_release(context) }
        // A program of another architecture could make calls that are not looked at.
        try check(seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, moult_seccomp_kill()), "the architecture")
        for number in Profile.notImplemented(landlock: landlock) {
            try check(
                seccomp_rule_add_array(context, moult_seccomp_error(UInt16(ENOSYS)), Int32(number), 0, nil), "\(number)"
            )
        }
        // libseccomp refuses a rule that says the same as another one.
        for rule in Set(profile.rules(landlock: landlock, process: process)) {
            guard let number = rule.number else { continue }
            let arguments = rule.arguments.map {
                scmp_arg_cmp(arg: UInt32($0.index), op: SCMP_CMP_MASKED_EQ, datum_a: $0.mask, datum_b: $0.value)
            }
            try check(
                seccomp_rule_add_array(
                    context, moult_seccomp_allow(), Int32(number), UInt32(arguments.count), arguments), rule.name)
        }
        return try newerCalls + exported(context)
    }

    /// The first rule: a call that is newer than all lists gets ENOSYS, whatever libseccomp knows of it.
    private static var newerCalls: [UInt64] {
        func instruction(_ code: Int32, _ whenTrue: UInt64, _ whenFalse: UInt64, _ value: UInt32) -> UInt64 {
            UInt64(code) | whenTrue << 16 | whenFalse << 24 | UInt64(value) << 32
        }
        return [
            instruction(BPF_LD | BPF_W | BPF_ABS, 0, 0, 4),
            instruction(BPF_JMP | BPF_JEQ | BPF_K, 0, 3, seccomp_arch_native()),
            instruction(BPF_LD | BPF_W | BPF_ABS, 0, 0, 0),
            instruction(BPF_JMP | BPF_JGE | BPF_K, 0, 1, UInt32(Profile.firstUnknown)),
            instruction(BPF_RET | BPF_K, 0, 0, moult_seccomp_error(UInt16(ENOSYS))),
        ]
    }

    private static func exported(_ context: scmp_filter_ctx) throws -> [UInt64] {
        let file = moult_memfd()
        guard file >= 0 else { throw Errno(moult_errno()).error("cannot make a file in memory") }
        // The written text is read back before.
        defer { MoultLibc.close(file) }
        try check(seccomp_export_bpf(context, file), "the program")
        var program = [UInt64](repeating: 0, count: Int(lseek(file, 0, SEEK_CUR)) / 8)
        let size = program.count * 8
        guard program.withUnsafeMutableBytes({ pread($0.isEmpty ? -1 : file, $0.baseAddress, size, 0) }) == size else {
            throw MoultError(.system, what: "cannot make a filter of system calls", why: "it cannot be read back")
        }
        return program
    }

    private static func check(_ code: Int32, _ what: String) throws {
        guard code < 0 else { return }
        throw MoultError(
            .system, what: "cannot make a filter of system calls", why: "libseccomp refuses \(what): \(Errno(-code))")
    }
}
