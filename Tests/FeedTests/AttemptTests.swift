import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// A machine that cannot update says so in `status`, to monitoring and in the metrics, until an attempt succeeds.
@Suite struct AttemptTests {
    let bench: Bench

    init() throws {
        bench = try Bench()
        try bench.key("k")
        try bench.release("1.0.0", sequence: 1)
        try bench.must(
            """
            moult publish -q public rel/test-1.0.0.json -k k.key
            moult init -q store --product org.example.test --key k.pub --feed "$PWD/public/feed.json"
            moult apply -q -s store
            """)
    }

    private func attempt() throws -> JSON? {
        try JSON(parsing: bench.run("moult status --json -s store").output, source: "status")["attempt"]
    }

    private func nagios() throws -> (status: Int32, output: String) {
        let ended = try bench.run("moult status --nagios -s store")
        return (ended.status, ended.output)
    }

    /// Moves the times in the record back, as if they had passed.
    private func age(_ seconds: Int) throws {
        try bench.must(
            """
            python3 - <<'E'
            import datetime, json
            path = "store/.moult/attempt.json"
            record = json.load(open(path))
            for name in ("time", "failingSince", "lastSuccess"):
                if name in record:
                    then = datetime.datetime.strptime(record[name], "%Y-%m-%dT%H:%M:%SZ") - datetime.timedelta(seconds=\(seconds))
                    record[name] = then.strftime("%Y-%m-%dT%H:%M:%SZ")
            json.dump(record, open(path, "w"))
            E
            """)
    }

    @Test func `the record has the place of this machine in the rollout of the newest release`() throws {
        try bench.release("2.0.0", sequence: 2)
        try bench.must("moult publish -q public rel/test-2.0.0.json --rollout 1 -k k.key")
        // As in docs/feeds.md, in another language.
        let position = try bench.must(
            """
            export MOULT_MACHINE_ID=machine-7
            moult check -q -s store || [ $? = 2 ]
            python3 -c "import hashlib
            number = int.from_bytes(hashlib.sha256(b'org.example.test\\n2.0.0\\nmachine-7').digest()[:4], 'big')
            print((number * 10000 >> 32) / 100)"
            """
        ).dropLast()
        let record = try #require(try attempt())
        #expect(record["rollout"]?["version"]?.string == "2.0.0")
        #expect(record["rollout"]?["position"].map { $0.line } == String(position), "\(record)")
        #expect(record["bytes"]?.integer == 0)
        let metrics = try bench.must("moult status --prometheus -s store")
        #expect(metrics.contains("moult_rollout_position_ratio{"))
        #expect(metrics.contains("moult_last_attempt_received_bytes{"))
    }

    @Test func `a failed attempt is reported everywhere until one succeeds`() throws {
        #expect(try nagios().status == 0)
        try bench.must("mv public gone")
        let refused = try bench.run("moult apply -q -s store")
        #expect(refused.status == 1)
        let what = "no feed at \(bench.path("public/feed.json"))"
        #expect(refused.errors.contains(what))
        #expect(try bench.must("moult status -s store").contains("the last attempt to update failed at "))
        let alarm = try nagios()
        #expect(alarm.status == 1 && alarm.output.contains("E272 \(what)"), "\(alarm)")
        #expect(try bench.run("moult status --check -q -s store").status == 1)
        let record = try attempt()
        #expect(record?["code"]?.string == "E272" && record?["what"]?.string == what, "\(String(describing: record))")
        #expect(record?["failures"]?.integer == 1 && record?["lastSuccess"] != nil)
        let metrics = try bench.must("moult status --prometheus -s store")
        #expect(metrics.contains("moult_failed{store=\"\(bench.path("store"))\"} 1\n"))
        #expect(metrics.contains("code=\"E272\""))
        // A check that succeeds shows nothing about the next update.
        try bench.must("mv gone public; moult check -q -s store")
        #expect(try nagios().status == 1)
        try bench.must("moult apply -q -s store")
        #expect(try nagios().status == 0)
        #expect(try attempt()?["code"] == nil && attempt()?["failures"]?.integer == 0)
    }

    @Test func `an update with nothing to do ends a failure only in a store without a feed`() throws {
        try bench.release("2.0.0", sequence: 2)
        try bench.must(
            """
            moult init -q alone --product org.example.test
            moult apply -q -s alone rel/test-1.0.0.json
            rm rel/test-2.0.0.tar.zst
            """)
        #expect(try bench.run("moult apply -q -s alone rel/test-2.0.0.json").status != 0)
        #expect(try bench.run("moult status --nagios -s alone").status == 1)
        try bench.must("moult apply -q -s alone rel/test-1.0.0.json; moult status --nagios -s alone")
        // Only an answer of the feed shows that a store can follow it again.
        #expect(try bench.run("mv public gone; moult apply -q -s store").status == 1)
        try bench.must("moult apply -q -s store rel/test-1.0.0.json")
        #expect(try nagios().status == 1)
    }

    @Test func `failures are counted from the first one, and are critical after a day`() throws {
        try bench.must("mv public gone")
        for _ in 1...3 { #expect(try bench.run("moult apply -q -s store").status == 1) }
        #expect(try attempt()?["failures"]?.integer == 3)
        #expect(try nagios().output.contains("3 attempts to update have failed since "))
        try age(86_300)
        #expect(try nagios().status == 1)
        try age(200)
        #expect(try nagios().status == 2)
        // The settings decide when.
        try bench.must(#"sed -i '0,/{/s//{"monitoring": {"criticalAfter": 200000},/' store/moult.json"#)
        #expect(try nagios().status == 1)
    }

    @Test func `a timer that has stopped is critical after three of its intervals`() throws {
        try age(10_000)
        #expect(try nagios().status == 0)
        try bench.must(#"sed -i '0,/{/s//{"monitoring": {"every": 3600},/' store/moult.json"#)
        #expect(try nagios().status == 0)
        try age(1_000)
        let alarm = try nagios()
        #expect(alarm.status == 2 && alarm.output.contains("the feed was not asked since "), "\(alarm)")
        try bench.must("moult apply -q -s store")
        #expect(try nagios().status == 0)
    }

    /// A user who only looks, and a release that is already installed, leave no trace.
    @Test(arguments: [
        "status", "plan", "verify", "status --deep", "apply -q rel/test-1.0.0.json", "history", "status --processes",
    ])
    func `a command that neither asks a feed nor begins an update leaves no trace`(_ words: String) throws {
        try bench.must("rm store/.moult/attempt.json")
        let before = try Tree(bench.path("store"))
        _ = try bench.run("moult \(words) -s store")
        #expect(try Tree(bench.path("store")) == before && Files.facts(bench.path("store/.moult/attempt.json")) == nil)
    }

    @Test func `an update by another process does not count as a failure`() throws {
        let updater = try bench.updater()
        try bench.release("2.0.0", sequence: 2)
        #expect(try bench.run("moult apply -q rel/test-2.0.0.json -s store").status == 75)
        #expect(try nagios().status == 0)
        updater.stop()
    }

    /// The store of a machine whose disk became read-only cannot say why it is stuck; the state directory of the user can.
    @Test func `an attempt on a read-only file system is recorded in the state directory`() throws {
        let ended = try bench.run(
            """
            unshare -m sh -c '
                mount --bind store store && mount -o remount,bind,ro store
                export XDG_STATE_HOME=/nowhere
                moult apply -q -s store; echo "apply $?"
                moult status --nagios -s store; echo "nagios $?"'
            rm -rf /var/lib/moult/attempts
            """)
        #expect(ended.output.contains("apply 1") || ended.output.contains("apply 3"), "\(ended)")
        #expect(ended.output.contains("its file system is read-only"), "\(ended)")
        #expect(ended.output.contains("the last attempt to update failed"), "\(ended)")
        #expect(ended.output.contains("nagios 1"), "\(ended)")
    }

    /// A user with only read access learns why the own check failed, and changes nothing for others.
    @Test func `an attempt of a user who may not write is recorded for that user`() throws {
        try bench.must("chmod 755 .; mkdir -m 777 home; mv public gone")
        let own = "HOME=$PWD/home setpriv --reuid 1 --clear-groups moult"
        #expect(try bench.run("\(own) check -s store").status == 1)
        let alarm = try bench.run("\(own) status --nagios -s store")
        #expect(alarm.status == 1 && alarm.output.contains("E272 no feed at"), "\(alarm)")
        #expect(try nagios().status == 0)
    }

    @Test func `a store of which only the settings are left installs its release again`() throws {
        try bench.must("rm -r store/.moult")
        #expect(try bench.must("moult status -s store").contains("Install a release with: moult apply"))
        #expect(try bench.run("moult check -s store").status == 2)
        try bench.must("moult apply -q -s store")
        #expect(try bench.installed() == "1.0.0")
        #expect(try bench.run("moult verify --deep -q -s store").status == 0)
    }

    /// After a restart of the node, the directory of the feed may not be mounted yet.
    @Test func `an app in a container starts with the release that it has if the feed is not there`() throws {
        let update = "FEED=$PWD/public/feed.json KEY=$(tail -n 1 k.pub) \(Project.root)/integrations/containers/update"
        try bench.must("mv public gone")
        let ended = try bench.run("\(update) store")
        #expect(ended.status == 0 && ended.errors.contains("public/feed.json"), "\(ended)")
        #expect(try nagios().status == 1)
        // The app cannot start without a release.
        #expect(try bench.run("\(update) empty").status != 0)
        try bench.must("rm store/food.db")
        #expect(try bench.run("\(update) store").status != 0)
    }

    @Test func `a lost key list is reported, and fetched again`() throws {
        let other = try Bench()
        try other.publishWithKeyList()
        try other.must(
            """
            moult init -q store --product org.example.test --key root.pub --feed "$PWD/public/feed.json"
            moult apply -q -s store; rm -r store/.moult/keys
            """)
        let alarm = try other.run("moult status --nagios -s store")
        #expect(alarm.status == 1 && alarm.output.contains("keys-1.json: the key list is missing"), "\(alarm)")
        try other.must("moult apply -q -s store")
        #expect(try other.run("moult status --nagios -s store").status == 0)
        // For a user who may not read the lists, none of them is lost.
        try other.must("chmod 755 . && chmod 700 store/.moult/keys")
        #expect(try other.run("setpriv --reuid 1 --clear-groups moult status --nagios -s store").status == 0)
    }

    @Test func `a consumer that did not reload is reported until the operator has restarted it`() throws {
        try bench.must(
            #"sed -i '0,/{/s//{"consumers": [{"name": "app", "command": {"reload": ["\/bin\/false"]}}],/' store/moult.json"#
        )
        try bench.release("2.0.0", sequence: 2)
        try bench.must("moult publish -q public rel/test-2.0.0.json -k k.key; moult apply -q -s store")
        let alarm = try nagios()
        #expect(alarm.status == 1 && alarm.output.contains("the consumer app did not reload"), "\(alarm)")
        // A run that finds nothing new does not hide it.
        try bench.must("moult apply -q -s store")
        #expect(try nagios().status == 1)
        try bench.must("moult recover -q -s store")
        #expect(try nagios().status == 0)
    }
}
