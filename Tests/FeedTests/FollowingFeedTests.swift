import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// `check`, `plan` and `apply` without an argument follow the feed of the store.
@Suite struct FollowingFeedTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    private func newest() throws -> String? {
        try JSON(parsing: bench.run("moult check --json").output, source: "check")["available"]?.string
    }

    private func passed() throws -> [String] {
        let json = try JSON(parsing: bench.run("moult check --json").output, source: "check")
        return (json["skipped"]?.array ?? []).map { "\($0["version"]?.string ?? ""): \($0["why"]?.string ?? "")" }
    }

    @Test func `a store follows a feed from the first release to the newest`() throws {
        try bench.follow(["1.0.0", "2.0.0"])
        let before = try Tree(bench.path("store"))
        let plan = try bench.run("moult plan")
        #expect(plan.status == 2)
        #expect(plan.output.contains("\nfeed: \(bench.path("public/feed.json")), serial 2\n"))
        #expect(plan.output.hasSuffix("apply with: moult apply\n"))
        #expect(try Tree(bench.path("store")) == before)
        #expect(try bench.run("moult check").status == 2)
        #expect(try bench.must("moult apply").contains("test nothing -> 2.0.0"))
        #expect(try bench.installed() == "2.0.0")
        #expect(try bench.run("moult check -q").status == 0)
        #expect(try bench.must("moult apply").hasPrefix("no newer release: 2.0.0 is installed\n"))
        // The download is the first phase in the times of the update.
        let history = try JSON(parsing: bench.must("moult history --json"), source: "history")
        let parts = try #require(history["entries"]?.array?.first?["parts"]?.array)
        #expect(parts.first?["name"]?.string == "fetch" && parts.first?["pass"]?.string == "prepare")
    }

    @Test func `check and apply fail if the feed is missing`() throws {
        try bench.follow(["1.0.0"])
        try bench.must("moult apply -q; mv public gone")
        #expect(
            try bench.refusal("moult check", status: 1)
                == "moult: error: no feed at \(bench.path("public/feed.json")): it does not exist\n"
                + "  Check \"feed\" in \(bench.path("store/moult.json")).\n")
        #expect(try bench.run("moult apply").status == 1)
    }

    @Test func `a mirror is used if the first feed is invalid`() throws {
        try bench.follow(["1.0.0"])
        try bench.must("cp -r public mirror; echo rubbish > public/feed.json")
        let feed: JSON = [
            "url": .string(bench.path("public/feed.json")),
            "mirrors": [.string("file://" + bench.path("mirror/feed.json"))],
        ]
        try bench.set("feed", feed)
        try bench.must("moult apply -q")
        #expect(try bench.installed() == "1.0.0")
    }

    @Test func `without a feed, the error says how to specify one`() throws {
        try bench.must("moult init --product org.example.test -q")
        #expect(
            try bench.refusal("moult apply", status: 64)
                == "moult: error: the store \(bench.path("store")) has no feed: \(bench.path("store/moult.json")) does not configure one\n"
                + "  Specify a feed with --feed URL, or add \"feed\" to \(bench.path("store/moult.json")). "
                + "To install a release without a feed: moult apply RELEASE\n"
        )
    }

    // MARK: choice of the release

    @Test func `withdrawn releases are not installed`() throws {
        try bench.follow(["1.0.0", "2.0.0"])
        try bench.must("moult publish public -q -k a.key --withdraw 2.0.0 --reason 'wrong totals'")
        #expect(try newest() == "1.0.0")
        #expect(try passed() == ["2.0.0: it was withdrawn: wrong totals"])
    }

    @Test func `an installed release that was withdrawn is reported`() throws {
        try bench.follow(["1.0.0"])
        try bench.must("moult apply -q; moult publish public -q -k a.key --withdraw 1.0.0 --reason 'wrong totals'")
        #expect(try bench.must("moult check").contains("1.0.0 was withdrawn by its publisher: wrong totals\n"))
    }

    @Test func `canaries and the first machines get a release before its percentage reaches them`() throws {
        try bench.follow(["1.0.0"])
        try bench.must("moult apply -q")
        try bench.release("2.0.0", sequence: 2)
        let machine = ["MOULT_MACHINE_ID": "x"]
        func newest() throws -> String? {
            let checked = try bench.run("moult check --json", environment: machine)
            return try JSON(parsing: checked.output, source: "check")["available"]?.string
        }
        let published = try bench.must("moult publish public rel/test-2.0.0.json -k a.key --group canaries --group lab")
        #expect(published.contains("+ 2.0.0 for the machines of canaries, lab\n"))
        #expect(try newest() == nil)
        try set(#""rollout": "lab""#)
        let plan = try bench.run("moult plan", environment: machine).output
        #expect(plan.contains("2.0.0: it is rolled out to the machines of canaries, lab, and this machine is in lab\n"))
        try bench.set("rollout", "first")
        #expect(try newest() == nil)
        try bench.must("moult publish public -q -k a.key --release 2.0.0 --rollout 1")
        #expect(try newest() == "2.0.0")
        // The groups stay when the percentage changes.
        #expect(try bench.feed()["releases"]?.array?.last?["groups"]?.array?.count == 2)
        try bench.set("rollout", "others")
        #expect(try newest() == nil)
    }

    private func set(_ setting: String) throws { try bench.must("sed -i '0,/{/s//{\(setting),/' store/moult.json") }

    @Test func `a store keeps a withdrawn release by default, and the timer warns`() throws {
        try bench.follow(["1.0.0"])
        try bench.must("moult apply -q; moult publish public -q -k a.key --withdraw 1.0.0 --reason 'wrong totals'")
        for _ in 1...2 {
            let ended = try bench.run("moult apply -q")
            #expect(ended.status == 0)
            #expect(
                ended.errors
                    == "moult: warning: the installed release 1.0.0 was withdrawn by its publisher: wrong totals. No release is kept to go back to.\n"
            )
        }
        #expect(try bench.installed() == "1.0.0")
    }

    @Test func `a store that is set to do so rolls back from a withdrawn release once`() throws {
        try bench.follow(["1.0.0"])
        try bench.must("moult apply -q")
        try bench.release("2.0.0", sequence: 2)
        try bench.must("moult publish public rel/test-2.0.0.json -q -k a.key; moult apply -q")
        #expect(try bench.installed() == "2.0.0")
        try set(#""onWithdrawn": "rollback""#)
        try bench.must("moult publish public -q -k a.key --withdraw 2.0.0 --reason 'wrong totals'")
        for _ in 1...2 {
            try bench.must("moult apply -q")
            #expect(try bench.installed() == "1.0.0")
        }
        #expect(try bench.must("moult history").contains("2.0.0 was withdrawn by its publisher: wrong totals"))
        // The next good release is installed as usual.
        try bench.release("3.0.0", sequence: 3)
        try bench.must("moult publish public rel/test-3.0.0.json -q -k a.key; moult apply -q")
        #expect(try bench.installed() == "3.0.0")
    }

    /// A new machine never had an older release that it could go back to.
    @Test func `a store that is set to do so installs the newest good release instead of a withdrawn one`() throws {
        try bench.follow(["1.0.0", "2.0.0", "3.0.0"])
        try bench.must("moult apply -q")
        try bench.must(
            "for v in 2.0.0 3.0.0; do moult publish public -q -k a.key --withdraw $v --reason 'wrong totals'; done")
        try bench.must("moult apply -q")
        #expect(try bench.installed() == "3.0.0")
        try set(#""onWithdrawn": "newest""#)
        #expect(try newest() == "1.0.0")
        for _ in 1...2 {
            try bench.must("moult apply -q")
            #expect(try bench.installed() == "1.0.0")
        }
        #expect(try bench.run("moult status --nagios").status == 0)
        // Without a good release, the store keeps what it has.
        try bench.must("moult publish public -q -k a.key --withdraw 1.0.0 --reason 'wrong totals'; moult apply -q")
        #expect(try bench.installed() == "1.0.0")
    }

    /// Installs 2.0.0 and then withdraws it with a recommendation; 1.0.0 is kept.
    private func withdraw(recommending what: String) throws {
        try bench.follow(["1.0.0"])
        try bench.must("moult apply -q")
        try bench.release("2.0.0", sequence: 2)
        try bench.must("moult publish public rel/test-2.0.0.json -q -k a.key; moult apply -q")
        #expect(
            try bench.must(
                "moult publish public -k a.key --withdraw 2.0.0 --reason 'wrong totals' --on-withdrawn \(what)"
            ).hasPrefix("- 2.0.0 is withdrawn: wrong totals; stores that have it "))
    }

    @Test(arguments: [("rollback", "1.0.0"), ("newest", "1.0.0"), ("keep", "2.0.0")])
    func `a store does what the publisher recommends for its withdrawn release`(
        _ recommended: String, _ expected: String
    ) throws {
        try withdraw(recommending: recommended)
        let check = try JSON(parsing: bench.run("moult check --json").output, source: "check")
        #expect(check["onWithdrawn"]?.string == recommended)
        for _ in 1...2 {
            try bench.must("moult apply -q")
            #expect(try bench.installed() == expected)
        }
        // The recommendation survives a renewal, and the operator of a store can decide otherwise.
        try bench.must("moult publish public -q -k a.key; grep -q onWithdrawn public/feed.json")
        #expect(try bench.must("moult history").contains("2.0.0 was withdrawn") == (recommended == "rollback"))
    }

    @Test func `the setting of a store has priority over the recommendation`() throws {
        try withdraw(recommending: "rollback")
        try set(#""onWithdrawn": "keep""#)
        try bench.must("moult apply -q")
        #expect(try bench.installed() == "2.0.0")
        let status = try JSON(parsing: bench.run("moult status --json").output, source: "status")
        #expect(status["known"]?["onWithdrawn"]?.string == "keep")
    }

    @Test func `separate release keys sign a recommendation, and publish refuses one that stores would ignore`() throws
    {
        try bench.publishWithKeyList()
        let withdraw = "moult publish public --withdraw 1.0.0 --reason bad"
        #expect(
            try bench.refusal("\(withdraw) --on-withdrawn newest -k online.key", status: 3).contains(
                "stores would ignore the recommendation of --on-withdrawn: stores require a signature by key \(bench.id("release"))\n"
            ))
        #expect(
            try bench.refusal("moult publish public --on-withdrawn newest -k online.key", status: 64).contains(
                "--on-withdrawn needs --withdraw VERSION"))
        // A release key signs the recommendation, and later the timestamp key renews the feed alone.
        try bench.must(
            "moult init -q --product org.example.test --key root.pub --feed public/feed.json; moult apply -q")
        try bench.release("2.0.0", sequence: 2)
        try bench.must("moult publish -q public rel/test-2.0.0.json -k release.key -k online.key; moult apply -q")
        try bench.must(
            "moult publish -q public --withdraw 2.0.0 --reason bad --on-withdrawn rollback -k release.key -k online.key"
        )
        try bench.must("moult publish -q public -k online.key; moult apply -q")
        #expect(try bench.installed() == "1.0.0")
        try bench.must("moult publish -q new rel/test-1.0.0.json --allow-unsigned")
        #expect(
            try bench.refusal(
                "moult publish new --withdraw 1.0.0 --reason bad --on-withdrawn keep --allow-unsigned", status: 3
            ).contains("the feed would not be signed"))
    }

    @Test func `a release on hold is not installed from a feed`() throws {
        try bench.follow(["1.0.0", "2.0.0"])
        try bench.must("moult hold 2.0.0 --reason 'not yet' -q")
        #expect(try newest() == "1.0.0")
        #expect(try passed() == ["2.0.0: it is on hold: not yet"])
    }

    /// The operator has held only the release that was rolled back.
    @Test func `after a rollback, the newest release that is not on hold is offered`() throws {
        try bench.follow(["1.0.0", "2.0.0", "3.0.0"])
        try bench.must("moult sign -q rel/*.json -k a.key; moult apply -q rel/test-1.0.0.json; moult apply -q")
        try bench.must("moult rollback -q")
        #expect(try bench.installed() == "1.0.0")
        #expect(try newest() == "2.0.0")
        #expect(try passed() == ["3.0.0: it is on hold: rolled back"])
        try bench.must("moult apply -q")
        #expect(try bench.installed() == "2.0.0")
    }

    @Test func `a newer version with a lower sequence is offered`() throws {
        try bench.follow(["1.0.0"])
        _ = try ReleaseMaker(in: bench.path("other")).make(
            "0.9.0", sequence: 7, [.reference("food", "CREATE TABLE food(x)")])
        try bench.must("moult sign -q other/*.json -k a.key; moult apply -q other/test-0.9.0.json")
        #expect(try newest() == "1.0.0")
        try bench.must("moult apply -q")
        #expect(try bench.installed() == "1.0.0")
    }

    @Test func `releases of other channels are installed only with a setting`() throws {
        try bench.follow(["1.0.0"])
        try bench.release("2.0.0", sequence: 2)
        try bench.must("moult publish public rel/test-2.0.0.json -q -k a.key --channel beta")
        #expect(try newest() == "1.0.0")
        try bench.set("feed", ["url": .string(bench.path("public/feed.json")), "channel": "beta"])
        #expect(try newest() == "2.0.0")
    }

    @Test func `releases that require a different app version are skipped`() throws {
        try bench.follow(["1.0.0"])
        try bench.release("2.0.0", sequence: 2, top: [.init("requires", ["app": ">=5"])])
        try bench.must("moult publish public rel/test-2.0.0.json -q -k a.key")
        try bench.set("app", "4.0.0")
        #expect(try newest() == "1.0.0")
        #expect(try passed() == ["2.0.0: it requires app >=5, but the app is 4.0.0"])
        try bench.set("app", "5.0.0")
        #expect(try newest() == "2.0.0")
    }

    /// A percentage of the machines gets the release: always the same machines, which keep the release when the
    /// percentage grows.
    @Test func `a rollout reaches its percentage of the machines`() throws {
        try bench.follow(["1.0.0"], options: "--rollout 30")
        func machines(_ share: Int) throws -> Set<Int> {
            try bench.must("moult publish public -q -k a.key --release 1.0.0 --rollout \(share)")
            return Set(
                try (1...60).filter {
                    try bench.run("moult check -q", environment: ["MOULT_MACHINE_ID": "machine-\($0)"]).status == 2
                })
        }
        let few = try machines(30)
        let more = try machines(60)
        #expect((5...35).contains(few.count) && more.count > few.count && few.isSubset(of: more))
        #expect(try machines(0) == [] && machines(100).count == 60)
        try bench.must("moult publish public -q -k a.key --release 1.0.0 --rollout 99")
        let plan = try bench.run("moult plan", environment: ["MOULT_MACHINE_ID": "machine-1"]).output
        #expect(plan.contains("\n1.0.0: it is rolled out to 99 % of machines, and this machine is included from "))
    }

    // MARK: chains

    @Test func `a store reaches a release through an intermediate release`() throws {
        try bench.follow(["1.0.0"])
        try bench.must("moult apply -q")
        try bench.release("2.0.0", sequence: 2)
        try bench.release("3.0.0", sequence: 3, top: [.init("requires", ["from": ">=2"])])
        try bench.release("4.0.0", sequence: 4, top: [.init("requires", ["from": ">=3"])])
        try bench.must("moult publish public rel/test-[234].0.0.json -q -k a.key")
        let plan = try bench.run("moult plan")
        #expect(plan.output.contains("test 1.0.0 -> 2.0.0"))
        #expect(plan.output.contains("\nthen: 3.0.0, 4.0.0, planned after this release is installed\n"))
        try bench.must("moult apply")
        #expect(try bench.installed() == "4.0.0")
        let history = try bench.must("grep -c '\"outcome\":\"done\"' store/.moult/history.jsonl")
        #expect(history == "4\n")
    }

    /// Installs 1.0.0, and publishes 3.0.0, which can only be reached over 2.0.0.
    private func followChain() throws {
        try bench.follow(["1.0.0"])
        try bench.must("moult apply -q")
        try bench.release("2.0.0", sequence: 2)
        try bench.release("3.0.0", sequence: 3, top: [.init("requires", ["from": ">=2"])])
        try bench.must("moult publish public rel/test-[23].0.0.json -q -k a.key")
    }

    @Test func `the error of a chain names the release that it has installed`() throws {
        try followChain()
        try bench.must("rm public/test-3.0.0.tar.zst")
        let ended = try bench.run("moult apply -q")
        #expect(ended.status != 0)
        #expect(ended.errors.contains("the same command installed release 2.0.0 first"), "\(ended)")
        #expect(!ended.errors.contains("Nothing was changed"), "\(ended)")
        #expect(try bench.installed() == "2.0.0")
    }

    @Test func `the result of a chain has the rows of every release`() throws {
        let maker = try ReleaseMaker(in: bench.path("rel"))
        func make(_ number: Int, _ check: String, _ preserve: JSON) throws {
            let sql = "CREATE TABLE t(id INTEGER PRIMARY KEY, x \(check)); CREATE TABLE n(y);"
            _ = try maker.make(
                "\(number).0.0", sequence: number, [.shared("d", sql, more: [.init("preserve", preserve)])],
                top: number == 1 ? [] : [.init("requires", ["from": .string(">=\(number - 1)")])])
        }
        try make(1, "", [["table": "t"], ["table": "n"]])
        try make(2, "CHECK(length(x) < 6)", [["table": "t", "onReject": "table"]])
        try make(3, "CHECK(length(x) < 6)", [["table": "t"]])
        try bench.key("a")
        try bench.must("moult publish public rel/test-1.0.0.json -q -k a.key")
        try bench.must("moult init --product org.example.test --key a.pub --feed public/feed.json -q; moult apply -q")
        try bench.must(
            "sqlite3 store/d.db \"INSERT INTO t VALUES(1, 'short'), (2, 'too long'); INSERT INTO n VALUES(3)\"")
        try bench.must("moult publish public rel/test-[23].0.0.json -q -k a.key")
        let output = try bench.must("moult apply --accept-unpreserved --json")
        let line = try #require(output.split(separator: "\n").last)
        let result = try JSON(parsing: String(line), source: "stdout")
        #expect(result["version"]?.string == "3.0.0")
        let rows = result["rows"]?.array ?? []
        #expect(rows.first { $0["table"]?.string == "t" }?["rejected"]?.integer == 1, "\(line)")
        #expect(rows.first { $0["table"]?.string == "n" }?["kept"]?.integer == 1, "\(line)")
        #expect(result["kept"]?.array?.count == 1, "\(line)")
    }

    @Test func `a release that cannot be reached is reported`() throws {
        try bench.follow(["1.0.0"])
        try bench.must("moult apply -q")
        try bench.release("3.0.0", sequence: 3, top: [.init("requires", ["from": ">=2"])])
        try bench.must("moult publish public rel/test-3.0.0.json -q -k a.key")
        #expect(try newest() == nil)
        #expect(
            try passed() == [
                "3.0.0: it requires an installed version >=2, and no release in the feed leads to such a version"
            ])
    }

    @Test func `a saved plan is applied once`() throws {
        try bench.follow(["1.0.0"])
        #expect(try bench.run("moult plan -o p").status == 2)
        // The plan installs the release that was approved, not a later one.
        try bench.release("2.0.0", sequence: 2)
        try bench.must("moult publish public rel/test-2.0.0.json -q -k a.key; moult apply -q --plan p")
        #expect(try bench.installed() == "1.0.0")
        #expect(try bench.run("moult apply --plan p").status == 4)
    }

    @Test func `a release without a manifest never counts as no newer release`() throws {
        try bench.follow(["1.0.0"])
        try bench.must("moult apply -q")
        try bench.release("2.0.0", sequence: 2)
        try bench.must("moult publish public rel/test-2.0.0.json -q -k a.key; rm public/test-2.0.0.json")
        let (verdict, error) = (
            "2.0.0 is in the feed, but its manifest cannot be read",
            """
            no manifest at \(bench.path("public/test-2.0.0.json")): the feed lists it, but the directory does not have it
              Copy the missing files to the directory, then try again.

            """
        )
        let check = try bench.run("moult check")
        #expect(check.status == 2 && check.output.hasPrefix("\(verdict); 1.0.0 is installed\n"), "\(check)")
        #expect(check.output.hasSuffix("\n`moult apply` would refuse this release: \(error)"), "\(check)")
        let json = try JSON(parsing: bench.run("moult check --json").output, source: "check")
        #expect(json["available"]?.string == "2.0.0" && json["skipped"]?.array == [], "\(json)")
        #expect(json["obstacle"]?["what"]?.string == "no manifest at \(bench.path("public/test-2.0.0.json"))")
        for verb in ["apply", "plan"] {
            #expect(try bench.refusal("moult \(verb)", status: 1) == "moult: error: \(error)")
        }
        let status = try bench.must("moult status")
        #expect(status.contains("\n\(verdict)\nCheck the feed with: moult check\n"), "\(status)")
        let known = try JSON(parsing: bench.must("moult status --json"), source: "status")["known"]
        #expect(
            known?["available"]?.string == "2.0.0" && known?["missing"]?.bool == true, "\(String(describing: known))")
        #expect(try bench.must("moult status --nagios", status: 1).contains("; \(verdict) | "))
        // The installed release can still be repaired.
        try bench.must("rm store/food.db; moult apply -q")
        #expect(try bench.installed() == "1.0.0")
    }

    @Test func `a store that follows older releases does not go back because a manifest is missing`() throws {
        try bench.follow(["1.0.0", "2.0.0"])
        try bench.set("follow", "match")
        try bench.must("moult apply -q")
        #expect(try bench.installed() == "2.0.0")
        try bench.must("rm public/test-2.0.0.json")
        #expect(try bench.must("moult apply").hasPrefix("no newer release: 2.0.0 is installed\n"))
        try bench.release("3.0.0", sequence: 3)
        // A feed is not renewed without its files.
        try bench.must("cp rel/test-2.0.0.json public")
        try bench.must("moult publish public rel/test-3.0.0.json -q -k a.key; rm public/test-[23].0.0.json")
        #expect(try bench.run("moult apply").status == 1)
        #expect(try bench.installed() == "2.0.0")
        // A withdrawn release is left.
        try bench.must("cp rel/test-[23].0.0.json public")
        for version in ["2.0.0", "3.0.0"] {
            try bench.must("moult publish public --withdraw \(version) --reason bad -q -k a.key")
        }
        try bench.must("moult apply -q")
        #expect(try bench.installed() == "1.0.0")
    }

    @Test func `check names a missing manifest on the way to the newest release`() throws {
        try followChain()
        try bench.must("rm public/test-2.0.0.json")
        #expect(
            try bench.must("moult check", status: 2).hasPrefix(
                "3.0.0 is in the feed, but the manifest of 2.0.0 cannot be read; 1.0.0 is installed\n"))
    }

    @Test func `a feed on a USB stick is followed`() throws {
        try bench.follow(["1.0.0", "2.0.0"])
        try bench.must("moult export 1.0.0 stick -q; rm -r public")
        try bench.must("moult apply -q --feed stick/feed.json")
        #expect(try bench.installed() == "1.0.0")
        // The feed lists a newer release, which is not on the stick; a hold is the advice of the documentation.
        let again = try bench.run("moult apply --feed stick/feed.json")
        #expect(again.status == 1)
        #expect(again.errors.contains("no manifest at \(bench.path("stick/test-2.0.0.json")): "), "\(again)")
        try bench.must("moult hold 2.0.0 --reason stick -q; moult apply -q --feed stick/feed.json")
        // Files on the stick are verified like all other files, so changed files are refused.
        try bench.must("moult init other --product org.example.test --key a.pub -q; echo >> stick/feed.json")
        #expect(try bench.run("moult apply --store other --feed stick/feed.json").status == 3)
    }
}
