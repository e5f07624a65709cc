internal import MoultBasics
internal import MoultFiles

/// A patch, or what it would be applied to, that is not what it must be: the release comes in another way.
struct PatchFault: Error {
    /// The patches by their names, the base by generation and member.
    let unfit: Set<String>
    let error: MoultError

    init(_ unfit: Set<String>, _ error: MoultError) { (self.unfit, self.error) = (unfit, error) }

    /// Whether an error of applying a patch says that of the files, and not that the disk is full or somebody stops it.
    static func isOfFiles(_ error: MoultError) -> Bool {
        (300..<400).contains(error.code.rawValue) || error.code == .digest || (error.cause as? Errno) == .noEntry
    }
}

extension Orchestrator {
    /// Does an update, and again without what turns out unfit: in the end by the bundle alone.
    func avoidingUnfitPatches(
        _ store: StoreSnapshot, _ body: (Planner) throws -> Result
    ) throws -> Result {
        var planner = try planner(store)
        while true {
            do { return try body(planner) } catch let fault as PatchFault {
                if fault.unfit.isSubset(of: planner.avoided) { throw fault.error }
                planner.avoided.formUnion(fault.unfit)
                let why = fault.error.why.map { ": \($0)" } ?? ""
                watcher.tell(.warning("\(fault.error.what)\(why); the update goes on without this patch"))
            }
        }
    }
}
