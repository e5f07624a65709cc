internal import CLinux

/// The Linux features that this build uses. The portable build uses the file of the same name in `Portable`.
package enum SystemFeatures {
    package static let startsPrograms = true
    package static let exchangesNames = true
    /// Kernel leases, by which a process learns that no other process has a file open.
    package static let hasFileLeases = true
    /// Extended attributes, including ACLs.
    static let hasAttributes = true
    /// The directory of the kernel's files about processes.
    package static let proc = "/proc"
    /// The flag of `open` for a descriptor that only identifies a file, which needs no read permission.
    static let pathOnly: Int32 = MOULT_O_PATH
}
