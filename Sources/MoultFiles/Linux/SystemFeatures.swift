internal import CLinux

/// The features of Linux that this build uses. The portable build has the file of the same name in `Portable` instead.
package enum SystemFeatures {
    package static let startsPrograms = true
    package static let exchangesNames = true
    /// Leases of the kernel, by which one process learns that no other has a file open.
    package static let hasFileLeases = true
    /// Extended attributes, of which an ACL is one.
    static let hasAttributes = true
    /// Where the kernel has its files about processes.
    package static let proc = "/proc"
    /// The flag of `open` for a path alone, which needs no permission to read.
    static let pathOnly: Int32 = MOULT_O_PATH
}
