import MoultBasics
import TestSupport
import Testing

/// `rollback`, `hold` and `unhold`: a bad release is not installed again automatically.
@Suite struct RollbackVerbTests {
    private let world: VerbWorld
    init() throws {
        world = try VerbWorld()
        try world.install(world.first, world.second)
    }

    @Test func `a rollback puts the release on hold`() throws {
        let run = try world.run("moult rollback --reason 'names are missing'")
        #expect(run.status == 0)
        let (one, two) = (try world.generation(world.first), try world.generation(world.second))
        #expect(
            run.out.hasPrefix(
                """
                test 2.0.0 -> 1.0.0   (store ./store, rollback, not signed)

                ok   check    rollback from 2.0.0 to 1.0.0, with its verified files
                ok - delete   food        out of service, kept for rollback (generation \(two))
                ok ~ copy     food        restored from the kept generation \(one)
                ok = copy     user        the existing file is kept
                ok   attach   user + food as "food" (read-only)
                ok   verify   food: the verified file: inode, size, time

                1.0.0 is installed (generation \(one)) in 
                """))
        #expect(
            run.out.hasSuffix(
                """

                2.0.0 is on hold: names are missing
                remove the hold with: moult unhold 2.0.0

                """))
        #expect(try world.must("moult sql 'SELECT count(*) AS n FROM food.food'") == "n\n2\n")
        #expect(
            try world.run("moult apply rel/test-2.0.0.json") == (
                3, "",
                "moult: error: release 2.0.0 is on hold: names are missing\n  Remove the hold with: moult unhold 2.0.0\n"
            ))
        #expect(try world.must("moult unhold") == "the hold on 2.0.0 was removed\n")
        #expect(try world.must("moult apply -q rel/test-2.0.0.json") == "")
    }

    @Test func `a dry run of a rollback prints a plan and changes nothing`() throws {
        let tree = try world.tree
        let run = try world.run("moult rollback --dry-run --to 1.0.0 --reason 'no rye'")
        #expect(run.status == 2)
        #expect(run.out.contains("\n~ copy     food        restored from the kept generation "))
        #expect(run.out.hasSuffix("\napply with: moult rollback --to 1.0.0 --reason 'no rye'\n"))
        #expect(try world.tree == tree)
        let json = try #require(try world.json("moult rollback -n --json").first)
        #expect(json["purpose"]?.string == "rollback")
        #expect(json["hold"]?["release"]?.string == "2.0.0")
    }

    @Test func `rollback, hold and unhold support -q and --json`() throws {
        let events = try world.json("moult rollback --json")
        #expect(events.last?["hold"]?["release"]?.string == "2.0.0")
        #expect(events.last?["version"]?.string == "1.0.0")
        #expect(try world.run("moult rollback -q --to 2.0.0 --force") == (0, "", ""))
    }

    @Test func `hold and unhold add and remove holds`() throws {
        #expect(
            try world.must("moult hold --reason holidays") == """
                every release is on hold: holidays
                remove the hold with: moult unhold '*'

                """)
        let three = try world.maker.make("3.0.0", sequence: 3, VerbWorld.databases(["rye"]))
        #expect(
            try world.run("moult plan \(three)") == (
                3, "", "moult: error: every release is on hold: holidays\n  Remove the hold with: moult unhold '*'\n"
            ))
        // Holds do not affect the installed release.
        #expect(try world.run("moult apply -q rel/test-2.0.0.json").status == 0)
        #expect(
            try world.must("moult hold 4.0.0 --reason 'not yet' --store store") == """
                4.0.0 is on hold: not yet
                remove the hold with: moult unhold 4.0.0 --store store

                """)
        let json = try #require(try world.json("moult unhold --json 4.0.0").first)
        #expect(json["before"]?["reason"]?.string == "not yet")
        #expect(try world.must("moult unhold") == "the hold on every release was removed\n")
        #expect(try world.must("moult unhold") == "nothing to do: nothing is on hold\n")
    }

    @Test func `the error of a rollback to a missing generation lists the kept generations`() throws {
        let (one, two) = (try world.generation(world.first), try world.generation(world.second))
        let advice = "To roll back to it: moult rollback --to \(one)"
        func said(_ name: String) throws -> String {
            let run = try world.run("moult rollback --to \(name)")
            #expect(run.status == 3 && run.err.contains(advice), "\(run)")
            return run.err.replacing("\n", with: " ")
        }
        for name in ["installed", "2.0.0", two] {
            #expect(
                try said(name).hasPrefix(
                    "moult: error: \(two) is the installed generation: a rollback needs another generation; kept generations: \(one)"
                ))
        }
        #expect(try said("9.0.0").hasPrefix("moult: error: generation 9.0.0 is not kept: kept generations: \(one)"))
    }
}
