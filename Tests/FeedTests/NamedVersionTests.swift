import MoultFiles
import TestSupport
import Testing

/// `apply VERSION` and `plan VERSION` install one release of the feed, or one that the store keeps.
@Suite struct NamedVersionTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    @Test func `a named release of the feed is planned and installed, and the next update goes on from there`() throws {
        try bench.follow(["1.0.0", "2.0.0", "3.0.0"])
        let plan = try bench.run("moult plan 2.0.0")
        #expect(plan.status == 2)
        #expect(plan.output.hasSuffix("apply with: moult apply 2.0.0\n"))
        try bench.must("moult apply -q 2.0.0")
        #expect(try bench.installed() == "2.0.0")
        #expect(try bench.must("moult apply 2.0.0") == "nothing to do: 2.0.0 is installed\n")
        #expect(try bench.run("moult plan 2.0.0").status == 0)
        try bench.must("moult apply -q")
        #expect(try bench.installed() == "3.0.0")
    }

    @Test func `an operator who names a release gets it before its rollout and from another channel`() throws {
        try bench.follow(["1.0.0"])
        try bench.release("2.0.0", sequence: 2)
        try bench.release("3.0.0", sequence: 3)
        try bench.must("moult publish public rel/test-2.0.0.json -q -k a.key --rollout 0")
        try bench.must("moult publish public rel/test-3.0.0.json -q -k a.key --channel beta")
        try bench.must("moult apply -q; moult apply -q 2.0.0")
        #expect(try bench.installed() == "2.0.0")
        try bench.must("moult apply -q 3.0.0")
        #expect(try bench.installed() == "3.0.0")
    }

    @Test func `a withdrawn, held, older or unknown release is refused with the reason`() throws {
        try bench.follow(["1.0.0", "2.0.0", "3.0.0"])
        try bench.must(
            "moult apply -q 2.0.0; moult publish public -q -k a.key --withdraw 3.0.0 --reason 'wrong totals'")
        #expect(
            try bench.refusal("moult apply 3.0.0", status: 3)
                == "moult: error: 3.0.0 cannot be installed: it was withdrawn: wrong totals\n"
                + "  To see what the feed offers: moult check\n")
        #expect(
            try bench.refusal("moult apply 1.0.0", status: 3).contains(
                "release 1.0.0 is older than the installed 2.0.0"))
        try bench.must("moult hold 1.0.0 --reason audit -q")
        #expect(try bench.refusal("moult apply 1.0.0 --allow-downgrade", status: 3).contains("audit"))
        try bench.must("moult unhold 1.0.0 -q; moult apply -q 1.0.0 --allow-downgrade")
        #expect(try bench.installed() == "1.0.0")
        for verb in ["apply", "plan"] {
            #expect(
                try bench.refusal("moult \(verb) 9.0.0", status: 3).hasPrefix(
                    "moult: error: no release 9.0.0 in \(bench.path("public/feed.json")): the store keeps 1.0.0+"))
        }
        #expect(try bench.installed() == "1.0.0")
    }

    @Test func `a release that the feed does not have is installed if the store keeps it`()
        throws
    {
        try bench.follow(["1.0.0", "2.0.0"])
        try bench.must("moult apply -q 1.0.0; moult apply -q")
        try bench.must("moult publish public -q -k a.key --keep-releases 1")
        try bench.must("moult apply -q 1.0.0 --allow-downgrade")
        #expect(try bench.installed() == "1.0.0")
        try bench.set("feed", nil)
        #expect(try bench.run("moult plan 2.0.0").status == 2)
        #expect(try bench.run("moult plan --deep 2.0.0").status == 2)
        #expect(try bench.refusal("moult plan -o p 2.0.0", status: 64).contains("2.0.0 is only kept in the store"))
        try bench.must("moult apply -q 2.0.0")
        #expect(try bench.installed() == "2.0.0")
        #expect(
            try bench.refusal("moult apply 3.0.0", status: 3).contains("the store follows no feed, and the store keeps")
        )
        #expect(
            try bench.refusal("moult apply --create --store new 3.0.0", status: 64).contains(
                "a new store follows no feed"))
        // A file with this name is the release.
        try bench.must(
            "cp rel/test-1.0.0.json 3.0.0; cp rel/*.tar* .; moult sign 3.0.0 -k a.key -q; moult apply -q --allow-downgrade 3.0.0"
        )
        #expect(try bench.installed() == "1.0.0")
    }
}
