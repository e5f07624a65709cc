package import MoultBasics
internal import MoultFeed
package import MoultFiles
internal import MoultTrust
package import StepKit

/// What a store has, as anybody may see without changing anything.
package struct Status: Sendable {
    package struct Kept: Sendable {
        package let name: String
        package let version: Version?
        package let size: Int
        package let isCurrent: Bool
        package let holders: [ProcessFacts]
    }
    package struct File: Sendable {
        package enum State: String, Sendable {
            case sound, missing, changed, living
        }
        package let name: String
        package let kind: Database.Kind
        package let path: String
        package let size: Int?
        package let state: State
        package let note: String?
    }

    package let root: String
    package let product: String
    package let app: Version?
    package let follow: Policy.Follow
    package let hold: Settings.Hold?
    /// The feed that is followed, and the keys that were pinned.
    package let feed: String?
    package let trusted: [String]
    package let current: Kept?
    package let since: Timestamp?
    package let databases: [File]
    package let generations: [Kept]
    package let unfinished: Unfinished
    package let last: History.Entry?

    package init(of layout: StoreLayout) throws {
        let settings = try Settings.read(layout)
        root = layout.root
        (product, app, follow, hold) = (settings.product, settings.app, settings.follow, settings.hold)
        feed = settings.feed?.url
        trusted = settings.keys?.entries.map(\.key.id.description) ?? []
        let name = try Generation.currentName(layout)
        generations = try Generation.names(layout).map { try Self.kept($0, current: name, layout) }
        current = generations.first(where: \.isCurrent)
        since = try Files.facts(layout.current).map { Timestamp(seconds: $0.changed.seconds) }
        databases = try name.map { try Self.files(Generation.load($0, in: layout), layout) } ?? []
        unfinished = try Unfinished(in: layout)
        last = try HistoryReader(layout).next()
    }

    private static func kept(_ name: String, current: String?, _ layout: StoreLayout) throws -> Kept {
        // A generation that cannot be read is told by `verify`; here it is only listed.
        let manifest = try? Generation.load(name, in: layout).manifest
        return Kept(
            name: name, version: manifest?.version, size: try Generation.size(name, layout), isCurrent: name == current,
            holders: try LockHolders.of(layout.generation(name)))
    }

    private static func files(_ generation: Generation, _ layout: StoreLayout) throws -> [File] {
        let seal = try generation.seal()
        return try generation.manifest.databases.map { database in
            let path = try layout.place(of: database)
            let facts = try Files.factsThroughLinks(path)
            func file(_ state: File.State, _ note: String? = nil) -> File {
                File(name: database.name, kind: database.kind, path: path, size: facts?.size, state: state, note: note)
            }
            guard let facts else { return file(.missing, "nothing at \(path)") }
            guard database.kind.isSealed else { return file(.living) }
            guard try Files.target(ofLink: path) == StoreLayout.link(to: database.member) else {
                return file(.changed, "\(path) is no link through current")
            }
            guard let entry = seal.entry(database.member) else { return file(.changed, "it was never sealed") }
            return entry.difference(to: facts).map { file(.changed, "it \($0)") } ?? file(.sound)
        }
    }
}
