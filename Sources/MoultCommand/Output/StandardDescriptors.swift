internal import CLinux
internal import Glibc

/// Makes the three standard descriptors safe to rely on.
enum StandardDescriptors {
    /// Fills those that the caller has closed, or a database opened later would get number 1 and be written over by
    /// results; and lets a write to a pipe that nobody reads fail instead of killing the process.
    static func secure() {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) == -1 {
            // The lowest free number is the one that is missing. Read-only, so that output to it fails as it should;
            // if it cannot be opened the writes fail all the same.
            _ = moult_openat(AT_FDCWD, "/dev/null", descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY, 0)
        }
        // Fails only for a signal that does not exist.
        _ = signal(SIGPIPE, SIG_IGN)
    }
}
