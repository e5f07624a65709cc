internal import Glibc

/// Waiting, where there is nothing to wait for but time.
enum Pause {
    static func milliseconds(_ count: Int) { usleep(UInt32(count * 1000)) }
}
