internal import MoultBasics
internal import MoultFiles
internal import StepKit

/// Checks that the paths of a store's databases are short enough for SQLite. The path of a store must leave room for the names
/// below it.
package struct PathLimit {
    /// The maximum in bytes: 512, as in SQLite's `os_unix.c`, minus the suffix `-journal`.
    static let longest = 504
    /// The maximum length of a store's path in bytes. The rest of the limit is enough for usual database names in the directory
    /// of a transaction.
    static let longestRoot = 400

    private let layout: StoreLayout

    package init(_ layout: StoreLayout) { self.layout = layout }

    func checkRoot() throws {
        let root = try resolved(layout.root)
        guard root.utf8.count > Self.longestRoot else { return }
        throw MoultError(
            .store, .refused, what: "cannot create a store at \(layout.root)",
            why: "the path has \(root.utf8.count) bytes, but the limit for a store is \(Self.longestRoot)",
            now:
                "Choose a directory with a shorter path: SQLite cannot open a file whose path has more than \(Self.longest) bytes."
        )
    }

    /// Throws if SQLite could not open a database of the release at one of its paths during an update.
    package func check(_ release: Manifest, generation: String, transaction: String) throws {
        let hidden = try resolved(layout.hidden)
        for database in release.databases {
            let places = [
                "\(hidden)/generations/\(generation)/\(database.member)",
                "\(hidden)/transactions/\(transaction)/generation/\(database.member)",
                "\(hidden)/transactions/\(transaction)/unpacked/\(database.path)",
                "\(hidden)/quarantine/\(transaction)-\(database.name)/\(database.path)",
            ]
            guard let path = places.first(where: { $0.utf8.count > Self.longest }) else { continue }
            throw MoultError(
                .store, .refused, what: "release \(release.version) cannot be installed in \(layout.root)",
                why:
                    "the path \(path) has \(path.utf8.count) bytes, but SQLite cannot open a file whose path has more than \(Self.longest)",
                now: "Create a store with a shorter path: \(moult: "init", "DIR", "--product", "\(release.product)")")
        }
    }

    /// Resolves links, as SQLite does before it opens a file. The part of a path that does not exist contains no links.
    private func resolved(_ path: String) throws -> String {
        var (existing, rest) = (path, "")
        while existing.utf8.count > 1, try Files.factsThroughLinks(existing) == nil {
            rest = "/\(Files.name(of: existing))\(rest)"
            existing = Files.directory(of: existing)
        }
        return (existing == "/" ? "" : try Files.resolved(existing)) + rest
    }
}
