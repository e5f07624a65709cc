package import Moult
package import MoultBasics
import MoultFiles
import MoultSQLite
package import StepKit

/// Two consecutive releases with two read-only databases and, unless they are in place, a user database.
package struct Releases {
    package let scratch: Scratch
    package let product: String
    package let first: String
    package let second: String

    /// Makes the releases. With `inPlace`, no bundle is used. `top` is added only to the second manifest, and `more` is
    /// SQL for the first database of the second release.
    package init(
        inPlace: Bool = false, format: ReleaseMaker.Format = .zst, top: [JSON.Member] = [], more: String = ""
    ) throws {
        scratch = try Scratch()
        var manifests: [String] = []
        var product = ""
        for (index, version) in ["1.0.0", "2.0.0"].enumerated() {
            let maker = try ReleaseMaker(in: scratch.path("release-\(version)"))
            var sources: [ReleaseMaker.Source] = [
                .reference("food", World.table("food", version) + (index == 1 ? more : ""), inPlace: inPlace),
                .reference("codes", World.table("codes", version), inPlace: inPlace),
            ]
            if !inPlace { sources.append(.user("user", "CREATE TABLE note(text);")) }
            manifests.append(
                try maker.make(version, sequence: index + 1, sources, format: format, top: index == 1 ? top : []))
            product = maker.product
        }
        (first, second) = (manifests[0], manifests[1])
        self.product = product
    }
}

/// A store with the first release installed.
package struct World {
    package let scratch: Scratch
    package let releases: Releases
    package let store: String
    package var first: String { releases.first }
    package var second: String { releases.second }

    package init(inPlace: Bool = false, installed: Bool = true, top: [JSON.Member] = []) throws {
        try self.init(Releases(inPlace: inPlace, top: top), installed: installed)
    }

    package init(_ releases: Releases, installed: Bool = true) throws {
        scratch = try Scratch()
        self.releases = releases
        store = scratch.path("store")
        try Orchestrator.create(at: store, Settings(product: releases.product))
        if installed { _ = try orchestrator().update(ReleaseFile(first)) }
    }

    package static func table(_ name: String, _ version: String) -> String {
        """
        CREATE TABLE \(name)(id INTEGER PRIMARY KEY, release TEXT);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
        INSERT INTO \(name) SELECT i, '\(version)' FROM n;
        """
    }

    package func orchestrator(_ steps: [any Step] = [], watcher: Watcher = Watcher()) throws -> Orchestrator {
        try Orchestrator(root: store, steps: .builtIn.adding(steps), watcher: watcher)
    }

    /// Returns the versions that a reader finds when it opens each database by its path.
    package func versions() throws -> Set<String> {
        var versions: Set<String> = []
        for name in ["food", "codes"] {
            guard try Files.factsThroughLinks("\(store)/\(name).db") != nil else {
                versions.insert("nothing")
                continue
            }
            let connection = try Connection(path: "\(store)/\(name).db", access: .immutable)
            for row in try connection.query("SELECT DISTINCT release FROM \(name)") {
                if case .text(let version)? = row.first { versions.insert(version) }
            }
            try connection.close()
        }
        return versions
    }

    /// Returns the visible part of a store: everything except the history and the record of feeds, which only describe
    /// the past.
    package func visible(skipping more: Set<String> = []) throws -> Tree {
        try Tree(store, times: false, skipping: more.union([".moult/history.jsonl", ".moult/lock", ".moult/feed"]))
    }
}

extension Settings {
    /// Changes a member of `moult.json`, as an operator would do.
    package static func rewrite(_ layout: StoreLayout, _ name: String, _ value: JSON?) throws {
        let bytes = try Files.read(layout.settings, limit: 1 << 20) ?? []
        let json = try JSON(parsing: bytes, as: .draft, source: layout.settings)
        try Files.replace(layout.settings, with: Array(json.setting(name, to: value).pretty.utf8))
    }
}
