internal import Glibc

/// A signal that ended a confined process, in words.
struct CrashReason {
    let signal: Int32

    func reason(_ work: String, muchTime: String, muchRoom: String) -> String {
        switch signal {
        case SIGXCPU: "it took \(muchTime)"
        case SIGXFSZ: "it wanted more room on the disk than \(muchRoom)"
        case SIGKILL: "SIGKILL ended \(work), as where memory runs out"
        default: "\(Self.names[signal] ?? "signal \(signal)") ended \(work)"
        }
    }

    private static let names: [Int32: String] = [
        SIGSEGV: "SIGSEGV", SIGBUS: "SIGBUS", SIGABRT: "SIGABRT", SIGILL: "SIGILL", SIGTRAP: "SIGTRAP",
        SIGFPE: "SIGFPE", SIGSYS: "SIGSYS",
    ]
}
