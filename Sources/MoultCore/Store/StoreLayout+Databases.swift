package import StepKit

extension StoreLayout {
    /// The stable path of a database: in the store, or where the operator's settings say that caches live.
    package func place(of database: Database) throws -> String {
        guard database.kind == .cache, let root = try Settings.read(self).cacheRoot else { return file(database.path) }
        return "\(root)/\(database.path)"
    }
}
