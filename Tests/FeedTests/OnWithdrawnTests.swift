import Moult
import MoultFiles
import MoultTrust
import StepKit
import TestSupport
import Testing

/// What a store does about its withdrawn release: the operator decides, otherwise the publisher, if release keys sign the feed.
@Suite struct OnWithdrawnTests {
    private let installed = Version(2, 0, 0)
    private let (release, thief): (SecretKey, SecretKey)
    private let (keys, other): (TrustedKeys, TrustedKeys)

    init() throws {
        (release, thief) = (try .generate(), try .generate())
        (keys, other) = (
            TrustedKeys([.init(key: release.publicKey)]), TrustedKeys([.init(key: thief.publicKey)])
        )
    }

    private func feed(_ recommended: Feed.OnWithdrawn?, isWithdrawn: Bool = true) -> Feed {
        var releases = (1...2).map { number in
            Feed.Release(
                version: Version(number, 0, 0), sequence: number,
                manifest: .init(name: "m\(number).json", size: 1, sha256: ""))
        }
        if isWithdrawn { releases[1].withdrawn = "bad" }
        releases[1].onWithdrawn = recommended
        return Feed(product: "org.example.test", serial: 1, created: nil, expires: .now, releases: releases)
    }

    private func action(
        _ setting: Feed.OnWithdrawn?, _ feed: Feed, _ roles: KeyRoles?
    ) -> Feed.OnWithdrawn? {
        var settings = Settings(product: "org.example.test")
        settings.onWithdrawn = setting
        return settings.onWithdrawn(installed, in: feed, keys: roles)
    }

    @Test func `the setting decides, then the recommendation, then the release is kept`() {
        let roles = KeyRoles(all: keys)
        for recommended in Feed.OnWithdrawn.allCases {
            #expect(action(nil, feed(recommended), roles) == recommended)
            for setting in Feed.OnWithdrawn.allCases {
                #expect(action(setting, feed(recommended), roles) == setting)
                #expect(action(setting, feed(nil), nil) == setting)
            }
            #expect(action(.newest, feed(recommended, isWithdrawn: false), roles) == nil)
        }
        #expect(action(nil, feed(nil), roles) == .keep)
    }

    /// A thief of the timestamp key could take stores back to an older release otherwise.
    @Test(arguments: Feed.OnWithdrawn.allCases)
    func `a recommendation needs a signature by release keys`(_ recommended: Feed.OnWithdrawn) throws {
        let split = KeyRoles(root: keys, release: keys, timestamp: other)
        var feed = feed(recommended)
        #expect(action(nil, feed, split) == .keep)
        #expect(action(nil, feed, nil) == .keep)
        #expect(action(.rollback, feed, split) == .rollback)
        // The thief has other keys, or the signature on another recommendation.
        let bytes = try #require(feed.releases[1].recommendation(of: feed.product))
        feed.releases[1].recommendedBy = [try signature(of: bytes, by: thief)]
        #expect(action(nil, feed, split) == .keep)
        feed.releases[1].recommendedBy.append(try signature(of: bytes, by: release))
        #expect(action(nil, feed, split) == recommended)
        for changed in Feed.OnWithdrawn.allCases where changed != recommended {
            feed.releases[1].onWithdrawn = changed
            #expect(action(nil, feed, split) == .keep)
        }
        feed.releases[1].onWithdrawn = recommended
        feed.product = "org.example.other"
        #expect(action(nil, feed, split) == .keep)
    }

    private func signature(of bytes: [UInt8], by key: SecretKey) throws -> String {
        String(
            decoding: try key.sign(bytes, trustedComment: "c").file(untrustedComment: "signature"), as: UTF8.self)
    }

    @Test func `only newest offers an older release`() throws {
        let settings = Settings(product: "org.example.test")
        for recommended in Feed.OnWithdrawn.allCases {
            let feed = feed(recommended)
            let choice = try FeedChoice(
                feed: feed, installed: installed,
                onWithdrawn: settings.onWithdrawn(installed, in: feed, keys: KeyRoles(all: keys)),
                channel: Feed.Release.defaultChannel, holds: Holds.read(StoreLayout(root: "/nonexistent"), settings),
                policy: Policy(follow: .newer, appVersion: nil, moultVersion: .moult), machine: Machine(id: "x")
            ).choose()
            #expect(choice.way.map(\.version) == (recommended == .newest ? [Version(1, 0, 0)] : []))
            #expect(choice.onWithdrawn == recommended && choice.withdrawn == "bad")
        }
    }
}
