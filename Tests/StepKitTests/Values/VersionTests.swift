import StepKit
import Testing

/// Semantic Versioning 2.0, with the list of test versions on its page.
@Suite struct VersionTests {
    @Test(arguments: [
        "0.0.4", "1.2.3", "10.20.30", "1.1.2-prerelease+meta", "1.1.2+meta", "1.1.2+meta-valid", "1.0.0-alpha",
        "1.0.0-beta", "1.0.0-alpha.beta", "1.0.0-alpha.beta.1", "1.0.0-alpha.1", "1.0.0-alpha0.valid",
        "1.0.0-alpha.0valid", "1.0.0-alpha-a.b-c-somethinglong+build.1-aef.1-its-okay", "1.0.0-rc.1+build.1",
        "2.0.0-rc.1+build.123", "1.2.3-beta", "10.2.3-DEV-SNAPSHOT", "1.2.3-SNAPSHOT-123", "1.0.0", "2.0.0", "1.1.7",
        "2.0.0+build.1848", "2.0.1-alpha.1227", "1.0.0-alpha+beta", "1.2.3----RC-SNAPSHOT.12.9.1--.12+788",
        "1.2.3----R-S.12.9.1--.12+meta", "1.2.3----RC-SNAPSHOT.12.9.1--.12", "1.0.0+0.build.1-rc.10000aaa-kk-0.1",
        "1.0.0-0A.is.legal",
        // Numbers after the '-' may have any length; leading zeros are allowed only after the '+'.
        "1.0.0-20261120100000123456789", "1.0.0+001", "999999999999999999.0.0",
    ])
    func `a version is read back unchanged`(_ text: String) { #expect(Version(text)?.description == text) }

    @Test(arguments: [
        "1", "1.2", "1.2.3-0123", "1.2.3-0123.0123", "1.1.2+.123", "+invalid", "-invalid", "-invalid+invalid",
        "-invalid.01", "alpha", "alpha.beta", "alpha.beta.1", "alpha.1", "alpha+beta", "alpha_beta", "alpha.",
        "alpha..",
        "beta", "1.0.0-alpha_beta", "-alpha.", "1.0.0-alpha..", "1.0.0-alpha..1", "1.0.0-alpha...1",
        "1.0.0-alpha....1", "1.0.0-alpha.....1", "1.0.0-alpha......1", "1.0.0-alpha.......1", "01.1.1", "1.01.1",
        "1.1.01", "1.2.3.DEV", "1.2-SNAPSHOT", "1.2.31.2.3----RC-SNAPSHOT.12.09.1--..12+788", "1.2-RC-SNAPSHOT",
        "-1.0.3-gamma+b7718", "+justmeta", "9.8.7+meta+meta", "9.8.7-whatever+meta+meta",
        "99999999999999999999999.999999999999999999.99999999999999999----RC-SNAPSHOT.12.09.1--------------------------------..12",
        "", " 1.0.0", "1.0.0 ", "v1.0.0", "1.0.0-", "1.0.0+", "1.0.0-+b", "1..0", "+1.0.0", "1.-2.3", "1.0.0-é",
        "١.٠.٠",
        // These versions are valid, but have more digits than moult supports.
        "99999999999999999999999.999999999999999999.99999999999999999", "1.1000000000000000000.0",
    ])
    func `an invalid version is refused`(_ text: String) { #expect(Version(text) == nil) }

    @Test func `all parts of a version are parsed`() throws {
        let version = try #require(Version("2.1.0-rc.1+exp.sha-5"))
        #expect(version == Version(2, 1, 0, prerelease: ["rc", "1"], build: ["exp", "sha-5"]))
    }

    /// Each version in this list precedes all later versions, and none of the earlier ones.
    @Test(arguments: [
        ["1.0.0", "2.0.0", "2.1.0", "2.1.1", "10.0.0"],
        // The order in section 11.
        [
            "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11",
            "1.0.0-rc.1", "1.0.0",
        ],
        // 11.4.2: words are in ASCII order: '-', then capital letters, then small letters.
        ["1.0.0--", "1.0.0-A", "1.0.0-B", "1.0.0-a", "1.0.0-a-b", "1.0.0-ab"],
        // 11.4.3: numbers come before words; "-1" is a word, and numbers may have any length.
        [
            "1.0.0-0", "1.0.0-2", "1.0.0-10", "1.0.0-18446744073709551616", "1.0.0-20000000000000000000",
            "1.0.0--1", "1.0.0-0a", "1.0.0-a",
        ],
        // 11.4.4: if all parts are equal, a version with more parts comes later.
        ["1.0.0-a", "1.0.0-a.0", "1.0.0-a.0.0", "1.0.0-a.a"],
        ["0.9.9", "1.0.0-0", "1.0.0"],
    ])
    func `versions are ordered by semantic versioning`(_ texts: [String]) throws {
        let versions = try texts.map { try #require(Version($0)) }
        for (i, a) in versions.enumerated() {
            for (j, b) in versions.enumerated() { #expect(a.precedes(b) == (i < j), "\(a) and \(b)") }
        }
    }

    @Test func `the order of versions ignores build metadata`() throws {
        let plain = try #require(Version("1.0.0-rc.1"))
        let built = try #require(Version("1.0.0-rc.1+5"))
        #expect(plain.ranksWith(built) && !plain.precedes(built) && !built.precedes(plain))
        #expect(plain != built)
    }
}
