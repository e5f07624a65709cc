internal import MoultEngine
public import StepKit

extension Store {
    /// The version of the newest release that the store's feed has for it; nil if it is installed already.
    ///
    /// Throws if the feed cannot be asked or believed: that is never "nothing new".
    public func newest(app: Version? = nil) throws -> String? {
        try orchestrator().check(FeedRequest(app: app)).newest?.version.description
    }

    /// Brings in the newest release of the feed that `moult.json` names, if there is one for this store.
    @discardableResult
    public func follow(
        app: Version? = nil, waiting seconds: Int = 10,
        progress: @escaping @Sendable (UpdateProgress) -> Void = { _ in }
    ) throws -> Update {
        let watcher = Watcher(tell: { if let event = UpdateProgress($0) { progress(event) } })
        return Update(try orchestrator(watcher).follow(FeedRequest(app: app), wait: seconds).result)
    }
}
