import Moult
import MoultBasics
import MoultFiles
import StepKit
import TestSupport
import Testing

/// The search for the releases to install gives the same result as one that compares each release with each other.
@Suite struct WaySearchTests {
    private struct Numbers: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state ^ state >> 31
        }
    }

    private static let ranges = [
        "*", ">=1", "<1", "^1", "~1.1", "1.0.0 || 1.2.0", ">=0.2.0 <1.1.0", ">=1.1.0-a", "2", "0.0.1",
        "1.0.0-a || 0.1.0-b", ">2.1",
    ]

    private static func feed(_ numbers: inout Numbers) throws -> Feed {
        var versions: Set<Version> = []
        func number() -> Int { Int.random(in: 0...2, using: &numbers) }
        while versions.count < 14 {
            let tag = ["", "", "-a", "-b"].randomElement(using: &numbers) ?? ""
            let version = try #require(Version("\(number()).\(number()).\(number())\(tag)"))
            versions.insert(version)
        }
        let releases = versions.sorted { $0.precedes($1) }.enumerated().map { index, version in
            var release = Feed.Release(
                version: version, sequence: index + 1, manifest: .init(name: "m\(index).json", size: 1, sha256: ""))
            if number() > 0 {
                release.requires.from = Self.ranges.randomElement(using: &numbers).flatMap { VersionRange($0) }
            }
            if number() == 0 { release.withdrawn = "bad" }
            return release
        }
        return Feed(product: "org.example.test", serial: 1, created: nil, expires: .now, releases: releases)
    }

    /// Returns the newest release that can be reached, and the way to it, by comparing each release with each other.
    private static func expected(_ feed: Feed, _ installed: Version) -> [Version] {
        let newer = feed.releases.filter { installed.precedes($0.version) && $0.withdrawn == nil }
        for target in newer.sorted(by: { $1.version.precedes($0.version) }) {
            var ways = [[target]]
            var reached: Set<Version> = [target.version]
            while !ways.isEmpty {
                if let way = ways.first(where: { $0[0].requires.from?.contains(installed) ?? true }) {
                    return way.map(\.version)
                }
                var longer: [[Feed.Release]] = []
                for way in ways {
                    for release in newer
                    where release.version.precedes(way[0].version)
                        && way[0].requires.from?.contains(release.version) == true
                        && reached.insert(release.version).inserted
                    {
                        longer.append([release] + way)
                    }
                }
                ways = longer.sorted { $1[0].version.precedes($0[0].version) }
            }
        }
        return []
    }

    private static func choose(_ feed: Feed, _ installed: Version) throws -> [Version] {
        let empty = try StoreLayout(root: "/nonexistent")
        let settings = Settings(product: "org.example.test")
        return try FeedChoice(
            feed: feed, installed: installed, channel: Feed.Release.defaultChannel, holds: Holds.read(empty, settings),
            policy: Policy(follow: .newer, appVersion: nil, moultVersion: .moult), machine: Machine(id: "x")
        ).choose().way.map(\.version)
    }

    @Test(.tags(.sampled), arguments: (0..<400).sampled(100))
    func `the releases to install are those of a search without an index`(seed: Int) throws {
        var numbers = Numbers(state: UInt64(seed))
        let feed = try Self.feed(&numbers)
        for installed in ["0.0.0", "0.1.1", "1.0.0", "1.0.0-a", "1.2.1"].compactMap({ Version($0) }) {
            #expect(
                try Self.choose(feed, installed) == Self.expected(feed, installed), "\(installed): \(feed.json.line)")
        }
    }
}
