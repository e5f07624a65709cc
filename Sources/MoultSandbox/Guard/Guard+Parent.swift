internal import CLinux
internal import Glibc
internal import MoultBasics
internal import MoultFiles

extension Guard {
    /// From here on this process ends when the one that started it does.
    package static func endWithParent() throws {
        guard moult_syscall(Int(SYS_prctl), Int(PR_SET_PDEATHSIG), Int(SIGKILL), 0, 0) == 0 else {
            throw Errno(moult_errno()).error("cannot end with the process that started this one")
        }
    }
}
