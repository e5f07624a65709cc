import MoultBasics
import MoultTrust
import StepKit
import TestSupport
import Testing

/// For each mutated input, a parser returns a value or an error, and does not crash.
@Suite struct MutationTests {
    /// Calls `body` with variants of the bytes (flipped, truncated, doubled, with unusual numbers); returns how many of
    /// the variants were read.
    private func mutate(_ seed: [UInt8], _ body: ([UInt8]) throws -> Void) throws -> Int {
        var numbers = SeededRandom(20_261_121)
        let strange = [
            "-1", "9223372036854775808", "1e999", "\u{0}", "\"", "{", "[[[[[[[[", "null", "\\ud800", "💥", "=",
        ]
        var read = 0
        for _ in 0..<4000 {
            var bytes = seed
            for _ in 0...Int.random(in: 0..<3, using: &numbers) where !bytes.isEmpty {
                let at = Int.random(in: 0..<bytes.count, using: &numbers)
                switch Int.random(in: 0..<5, using: &numbers) {
                case 0: bytes[at] ^= 1 << UInt8.random(in: 0..<8, using: &numbers)
                case 1: bytes.removeSubrange(at...)
                case 2: bytes.remove(at: at)
                case 3: bytes.insert(contentsOf: bytes[at..<min(bytes.count, at + 40)], at: at)
                default: bytes.insert(contentsOf: Array((strange.randomElement(using: &numbers) ?? "").utf8), at: at)
                }
            }
            do {
                try body(bytes)
                read += 1
            } catch is MoultError {}
        }
        return read
    }

    @Test func `a mutated feed is refused, or can be written again unchanged`() throws {
        var release = Feed.Release(
            version: Version(1, 2, 3, prerelease: ["rc", "1"]), sequence: 4, channel: "beta",
            manifest: .init(name: "m.json", size: 9, sha256: String(repeating: "ab", count: 32)),
            requires: .init(app: VersionRange(">=1 <2"), from: VersionRange("^1.4 || 2.0.0")), rollout: 5,
            withdrawn: "why")
        (release.onWithdrawn, release.recommendedBy) = (.newest, ["a", "b"])
        let feed = Feed(
            product: "org.example.x", serial: 1, created: .now, expires: .now, releases: [release])
        let read = try mutate(Array(feed.json.pretty.utf8)) { bytes in
            // A feed that was read can be written again with the same result.
            let feed = try Feed(parsing: bytes, source: "f")
            #expect(try Feed(parsing: Array(feed.json.line.utf8), source: "f") == feed)
        }
        #expect((1..<4000).contains(read))
    }

    @Test func `changed signatures verify only if the change is irrelevant, and changed keys cause no crash`() throws {
        let key = try SecretKey.generate()
        let message = Array("feather".utf8)
        let signature = try key.sign(message, trustedComment: "a comment").file(untrustedComment: "b")
        // If the signature of a changed file is still valid, the change must be irrelevant.
        _ = try mutate(signature) { bytes in
            let read = try Signature(file: bytes, named: "s")
            let proven = try read.verify(message, named: "m", by: [key.publicKey])
            #expect(proven.trustedComment == "a comment" && proven.key == key.publicKey)
        }
        _ = try mutate(key.publicKey.file) { _ = try PublicKey(file: $0, named: "p") }
        _ = try mutate(key.file(password: nil)) { bytes in
            _ = try SecretKey(file: bytes, named: "s") { throw MoultError(.json, what: "no password") }
        }
        let keys = TrustedKeys([.init(key: key.publicKey)])
        let roles = KeyRoles(root: keys, release: keys, timestamp: keys, expires: Timestamp(seconds: 1_800_000_000))
        for list in [
            KeyList(product: "org.example.x", serial: 1, keys: keys),
            KeyList(product: "org.example.x", serial: 1, roles: roles),
        ] {
            let bytes = Array(list.json.pretty.utf8)
            #expect(try KeyList(parsing: bytes, source: "k") == list)
            _ = try mutate(bytes) { _ = try KeyList(parsing: $0, source: "k") }
        }
    }

    @Test func `mutated versions and ranges do not crash the parser`() throws {
        _ = try mutate(Array(">=1.4 <3 || ^2.1.0-rc.1 || ~2.1.3".utf8)) { bytes in
            let text = String(decoding: bytes, as: UTF8.self)
            if let range = VersionRange(text) { _ = range.contains(Version(2, 1, 0)) }
            if let version = Version(text) { #expect(Version(version.description) == version) }
        }
    }
}
