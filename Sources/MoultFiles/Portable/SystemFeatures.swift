internal import MoultLibc

/// The Linux features that this build does without, even on Linux: it is built with `MOULT_PORTABLE=1`.
package enum SystemFeatures {
    package static let startsPrograms = false
    package static let exchangesNames = false
    package static let hasFileLeases = false
    /// Extended attributes, including ACLs.
    static let hasAttributes = false
    /// A directory that does not exist: all code works where `/proc` is not mounted.
    package static let proc = "/.moult-no-proc"
    /// Opens for reading, without waiting for the other end of a pipe.
    static let pathOnly: Int32 = O_RDONLY | O_NONBLOCK
}
