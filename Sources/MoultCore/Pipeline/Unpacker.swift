internal import MoultBasics
internal import MoultFiles
internal import StepKit

/// Takes the members that a plan needs out of the bundle, into the transaction's own directory.
struct Unpacker {
    let transaction: Transaction
    let release: Manifest
    let bundle: String
    let members: [String]
    let progress: @Sendable (PrepareContext.Progress) throws -> Void

    func unpack() throws {}
}
