internal import CLinux

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
