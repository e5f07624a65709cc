internal import MoultBasics
internal import MoultCore
internal import StepKit

enum StoreErrors {
    static func empty(_ layout: StoreLayout) -> MoultError {
        MoultError(
            .store, what: "nothing is installed in \(layout.root)", why: "no release was applied yet",
            now: "Apply one: moult apply MANIFEST")
    }
}

extension Generation {
    /// A database of the installed release, by its name.
    func database(_ name: String) throws -> Database {
        if let database = manifest.database(name) { return database }
        throw MoultError(
            .store, what: "release \(manifest.version) has no database \"\(name)\"",
            why: "it has \(manifest.databases.map(\.name).joined(separator: ", "))",
            now: didYouMean(name, among: manifest.databases.map(\.name)))
    }
}
