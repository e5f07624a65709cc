import Moult
import MoultBasics
import MoultCore
import MoultFiles
import MoultSQLite
import StepKit
import TestSupport

/// A store with a first release installed, and a second one to bring in: two sealed databases and a user's.
struct World {
    let scratch: Scratch
    let maker: ReleaseMaker
    let store: String
    let first: String
    let second: String

    /// With `inPlace` no archive takes part.
    init(inPlace: Bool = false, installed: Bool = true, top: [JSON.Member] = []) throws {
        scratch = try Scratch()
        store = scratch.path("store")
        var makers: [ReleaseMaker] = []
        var manifests: [String] = []
        for (index, version) in ["1.0.0", "2.0.0"].enumerated() {
            let maker = try ReleaseMaker(in: scratch.path("release-\(version)"))
            var sources: [ReleaseMaker.Source] = [
                .reference("food", Self.table("food", version), inPlace: inPlace),
                .reference("codes", Self.table("codes", version), inPlace: inPlace),
            ]
            if !inPlace { sources.append(.user("user", "CREATE TABLE note(text);")) }
            // Only the second release names what is to be tried.
            manifests.append(try maker.make(version, sequence: index + 1, sources, top: index == 1 ? top : []))
            makers.append(maker)
        }
        (maker, first, second) = (makers[1], manifests[0], manifests[1])
        try Orchestrator.create(at: store, Settings(product: maker.product))
        if installed { _ = try orchestrator().update(UpdateRequest(manifest: first)) }
    }

    static func table(_ name: String, _ version: String) -> String {
        """
        CREATE TABLE \(name)(id INTEGER PRIMARY KEY, release TEXT);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
        INSERT INTO \(name) SELECT i, '\(version)' FROM n;
        """
    }

    func orchestrator(_ steps: [any Step] = [], watcher: Watcher = Watcher()) throws -> Orchestrator {
        try Orchestrator(root: store, steps: .builtIn.adding(steps), watcher: watcher)
    }

    /// The releases that a reader finds when it opens each database by its path.
    func versions() throws -> Set<String> {
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

    /// What people see of a store: everything but the history, whose lines tell what happened.
    func visible(skipping more: Set<String> = []) throws -> Tree {
        try Tree(store, times: false, skipping: more.union([".moult/history.jsonl", ".moult/lock"]))
    }
}
