internal import MoultBasics
internal import StepKit

extension Version {
    /// The advice for a release whose version differs from another one only in its build metadata: no store would update to it.
    var adviceOnBuildMetadata: Advice {
        "Build metadata, the part after \"+\", does not make a version newer. Choose a higher version, such as "
            + "\(Version(major, minor, patch + 1)), for the release."
    }
}
