import Moult
import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// The quarantine does not grow without limit, and only the operator removes user data.
@Suite struct LibraryQuarantineTests {
    let scratch: Scratch
    let maker: ReleaseMaker
    let store: Store
    var quarantine: String { scratch.path("store/.moult/quarantine") }

    init() throws {
        scratch = try Scratch()
        maker = try ReleaseMaker(in: scratch.path("releases"))
        store = Store(at: scratch.path("store"))
    }

    /// Makes a release with a cache of about 100 KiB, whose schema is different in each release.
    private func release(_ number: Int) throws -> String {
        try maker.make(
            "\(number).0.0", sequence: number,
            [
                .cache(
                    "thumbs", "CREATE TABLE thumb\(number)(image); INSERT INTO thumb\(number) VALUES(zeroblob(100000));"
                ),
                .user("user", "CREATE TABLE note(text); INSERT INTO note VALUES(zeroblob(100000));"),
            ])
    }

    private func set(_ name: String, _ value: JSON) throws {
        try Settings.rewrite(StoreLayout(root: store.directory), name, value)
    }

    /// Returns the releases whose content the sets of a database have.
    private func sets(_ name: String) throws -> [String] {
        try Files.list(quarantine).filter { $0.hasSuffix("-\(name)") }.compactMap {
            try QuarantineRecord(in: "\(quarantine)/\($0)")?.release
        }.sorted()
    }

    @Test func `the oldest caches are removed from quarantine first`() throws {
        try store.updateBlocking(to: release(1))
        for number in 2...4 { try store.updateBlocking(to: release(number)) }
        // Within the budget, all caches stay.
        #expect(try sets("thumbs") == ["1.0.0", "2.0.0", "3.0.0"])
        try store.reset("user", settingUserDataAside: true)
        // Dates have a resolution of seconds, and the order must not depend on the speed of the test.
        for (age, release) in zip([30, 20, 10], ["1.0.0", "2.0.0", "3.0.0"]) { try makeOlder(release, seconds: age) }
        // The database of the user counts, too.
        try set("quarantine", ["size": .integer(370_000)])
        try store.updateBlocking(to: release(5))
        #expect(try sets("thumbs") == ["3.0.0", "4.0.0"])
        // With a budget of 0, no cache stays, but user data does.
        try set("quarantine", ["size": .integer(0)])
        try store.updateBlocking(to: release(6))
        #expect(try sets("thumbs") == [])
        #expect(try sets("user") == ["4.0.0"])
    }

    /// Changes the dates of the sets of a release to an earlier time.
    private func makeOlder(_ release: String, seconds: Int) throws {
        for name in try Files.list(quarantine) {
            let directory = "\(quarantine)/\(name)"
            guard let label = try QuarantineRecord(in: directory), label.release == release else { continue }
            let path = "\(directory)/\(QuarantineRecord.fileName)"
            let json = try JSON(parsing: Files.read(path, limit: 1 << 20) ?? [], source: path)
            let time = Timestamp(seconds: label.time.seconds - seconds).description
            try Files.replace(path, with: Array(json.setting("time", to: .string(time)).pretty.utf8))
        }
    }

    @Test func `clean removes older sets from the quarantine`() throws {
        try store.updateBlocking(to: release(1))
        try store.updateBlocking(to: release(2))
        try store.reset("user", settingUserDataAside: true)
        for release in ["1.0.0", "2.0.0"] { try makeOlder(release, seconds: 40 * 86_400) }
        try store.updateBlocking(to: release(3))
        try store.reset("user", settingUserDataAside: true)
        let orchestrator = try Orchestrator(root: store.directory, steps: .builtIn)
        // No set is that old, and a dry run only lists the sets that would be removed.
        #expect(try orchestrator.clean(quarantineDays: 41).quarantine.removed == [])
        let before = try Tree(quarantine)
        let dry = try orchestrator.clean(quarantineDays: 30, dry: true).quarantine
        #expect(dry.removed.map(\.record?.database) == ["thumbs"])
        #expect(dry.kept.map(\.set.record?.database) == ["user"])
        #expect(dry.kept.map(\.why) == ["it contains user data"])
        #expect(try Tree(quarantine) == before)
        #expect(try orchestrator.clean(quarantineDays: 30).quarantine.removed.map(\.record?.database) == ["thumbs"])
        #expect(try sets("thumbs") == ["2.0.0"] && sets("user") == ["2.0.0", "3.0.0"])
        let all = try orchestrator.clean(quarantineDays: 30, includingUserData: true).quarantine
        #expect(all.removed.map(\.record?.database) == ["user"])
        #expect(try sets("user") == ["3.0.0"])
        // With an age of 0, sets from the last day are removed as well.
        _ = try orchestrator.clean(quarantineDays: 0, includingUserData: true)
        #expect(try sets("user") == [] && sets("thumbs") == [])
    }

    /// A set without a record may contain user data.
    @Test func `a set without a record is kept`() throws {
        try store.updateBlocking(to: release(1))
        try store.updateBlocking(to: release(2))
        for name in try Files.list(quarantine) {
            try Files.remove("\(quarantine)/\(name)/\(QuarantineRecord.fileName)")
        }
        try set("quarantine", ["size": .integer(0)])
        try store.updateBlocking(to: release(3))
        let kept = try Orchestrator(root: store.directory, steps: .builtIn).clean(quarantineDays: 0).quarantine.kept
        #expect(kept.count == 1)
    }
}
