internal import MoultLibc

/// The Linux features that a build with `MOULT_PORTABLE=1` does not use, even on Linux.
package enum SystemFeatures {
    package static let startsPrograms = false
    package static let exchangesNames = false
    package static let hasFileLeases = false
    /// Extended attributes, including ACLs.
    static let hasAttributes = false
    /// A directory that does not exist, so that all code behaves as if `/proc` were not mounted.
    package static let proc = "/.moult-no-proc"
    /// Opens for reading, without waiting for the other end of a pipe.
    static let pathOnly: Int32 = O_RDONLY | O_NONBLOCK
}
