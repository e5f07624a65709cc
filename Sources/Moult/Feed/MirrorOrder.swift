package import MoultBasics
internal import MoultFiles
internal import MoultTrust

/// The order in which a store tries the locations of its feed: group by group, shuffled within each group.
///
/// Each store always uses the same order, so that caches of web servers and registries stay useful. The order differs between
/// stores, so that equal mirrors share the load.
package struct MirrorOrder {
    private let store: String

    init(_ layout: StoreLayout) throws {
        self.init(machine: try .this(), store: try Files.absolute(layout.root))
    }

    package init(machine: Machine, store: String) { self.store = "\(machine.id)\n\(store)" }

    package func addresses(of feed: FeedSettings) throws -> [Address] {
        try feed.groups.flatMap { group -> [Address] in
            // The rank does not depend on the query, because a token in the query may change.
            let ranked = try group.map { (rank: try rank(of: $0.description), address: $0) }
            return ranked.sorted { $0.rank < $1.rank }.map(\.address)
        }
    }

    private func rank(of place: String) throws -> String {
        try SHA256.digest(of: Array("\(store)\n\(place)".utf8)).hex
    }
}
