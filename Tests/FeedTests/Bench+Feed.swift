import MoultBasics
import MoultFiles
import TestSupport

extension Bench {
    /// Creates releases 1.0.0, 2.0.0 …, publishes them with key `a` to `public`, and creates a store that follows it.
    func follow(_ versions: [String], options: String = "") throws {
        if try Files.facts(path("a.key")) == nil {
            try published(versions, options: options)
        } else {
            try publish(versions, options)
        }
        try must("moult init --product org.example.test --key a.pub --feed public/feed.json -q")
    }

    /// Creates key `a`, and releases that are published with it. Tests with the same releases have the same key.
    func published(_ versions: [String], options: String = "") throws {
        try Fixture.copy("\(versions) \(options)", to: scratch.path) { directory in
            let bench = try Bench()
            try bench.key("a")
            try bench.publish(versions, options)
            try Shell.must(["cp", "-a", "\(bench.scratch.path)/.", directory])
        }
    }

    private func publish(_ versions: [String], _ options: String) throws {
        for (index, version) in versions.enumerated() { try release(version, sequence: index + 1) }
        for version in versions { try must("moult publish public rel/test-\(version).json -k a.key -q \(options)") }
    }

    /// Returns the published feed as JSON.
    func feed() throws -> JSON {
        try JSON(parsing: try Files.read(path("public/feed.json"), limit: 1 << 26) ?? [], source: "feed")
    }

    /// Replaces the published feed with a changed feed, signed by a key.
    func replaceFeed(by key: String = "a", _ change: (JSON) -> JSON) throws {
        let text = change(try feed()).pretty
        try must("rm -f public/feed.json*.minisig")
        try Files.replace(path("public/feed.json"), with: Array(text.utf8))
        try must("moult sign public/feed.json -k \(key).key -q")
    }

    /// Changes one member of the release at an index.
    func replaceRelease(_ index: Int, _ name: String, _ value: JSON?) throws {
        try replaceFeed { feed in
            var releases = feed["releases"]?.array ?? []
            releases[index] = releases[index].setting(name, to: value)
            return feed.setting("releases", to: .array(releases))
        }
    }

    /// Sets a member of `moult.json`.
    func set(_ name: String, _ value: JSON?) throws {
        let settings = path("store/moult.json")
        let json = try JSON(parsing: try Files.read(settings, limit: 1 << 20) ?? [], source: settings)
        try Files.replace(settings, with: Array(json.setting(name, to: value).pretty.utf8))
    }
}
