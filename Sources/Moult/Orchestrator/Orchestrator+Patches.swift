internal import MoultBasics
internal import MoultEngine
internal import MoultStore

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
                watcher.tell(.warning("\(fault.error.what)\(why); the update continues without this patch"))
            }
        }
    }
}
