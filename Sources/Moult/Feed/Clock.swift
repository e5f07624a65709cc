internal import Glibc

/// Waiting, where the kernel has nothing that one could wait for.
enum Clock {
    static func pause(milliseconds: UInt32) { usleep(milliseconds * 1000) }
}
