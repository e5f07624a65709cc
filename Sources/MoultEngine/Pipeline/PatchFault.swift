package import MoultBasics
internal import MoultFiles
internal import MoultStore

/// A patch, or what it would be applied to, that is not what it must be: the release comes in another way.
package struct PatchFault: Error {
    /// The patches by their names, the base by generation and member.
    package let unfit: Set<String>
    package let error: MoultError

    package init(_ unfit: Set<String>, _ error: MoultError) { (self.unfit, self.error) = (unfit, error) }

    /// Whether an error of applying a patch says that of the files, and not that the disk is full or somebody stops it.
    static func isOfFiles(_ error: MoultError) -> Bool {
        (300..<400).contains(error.code.rawValue) || error.code == .digest || (error.cause as? Errno) == .noEntry
    }
}
