import Moult
import MoultBasics
import MoultLibc
import TestSupport
import Testing

@testable import MoultCommand

/// `moult status` reports the feed, failures and users of the store.
@Suite struct StatusVerbTests {
    private let world: VerbWorld
    init() throws { world = try VerbWorld() }

    /// Creates a store that follows a feed, and installs release 1.0.0.
    private func follow() throws {
        try world.must(
            """
            moult keygen -q --no-password k
            moult publish -q public rel/test-1.0.0.json --key k.key
            moult init -q --product org.example.test --key k.pub --feed "$PWD/public/feed.json"
            moult apply -q
            """)
    }

    private func status() throws -> JSON { try #require(try world.json("moult status --json").first) }

    @Test func `status shows the newest release of the last feed`() throws {
        try follow()
        #expect(try world.must("moult status").contains("\n  known    serial 1 of "))
        #expect(try status()["known"]?["available"] == nil)
        try world.must("moult publish -q public rel/test-2.0.0.json --key k.key")
        #expect(try status()["known"]?["serial"]?.integer == 1)
        #expect(try world.run("moult check -q").status == 2)
        // `status` does not contact a server.
        try world.must("mv public gone")
        let tree = try world.tree
        let text = try world.must("moult status")
        #expect(text.contains("\n2.0.0 is available and not installed\nInstall it with: moult apply\n"), "\(text)")
        #expect(try status()["known"]?["available"]?.string == "2.0.0")
        #expect(try world.run("moult status --nagios").status == 1)
        #expect(try world.tree == tree)
        try world.must("mv gone public; moult hold -q 2.0.0 --reason 'too early'")
        #expect(try status()["known"]?["available"] == nil)
        let held = try world.must("moult status")
        #expect(held.contains("\n2.0.0 is on hold: too early\n"))
        #expect(!held.contains("is skipped"))
        try world.must("moult unhold -q; moult apply -q")
        #expect(try status()["known"]?["available"] == nil)
    }

    @Test func `status says whose signatures a store checks`() throws {
        try follow()
        let id = try world.must("head -n 1 k.pub").split(separator: " ").last ?? ""
        #expect(try world.must("moult status").contains("\n  trusts   \(id)"))
        try world.must("moult init -q open --product org.example.test --feed public; moult apply -q -s open")
        let text = try world.must("moult status -s open")
        #expect(text.contains("\n  trusts   no key, so signatures are not checked\n"), "\(text)")
        #expect(try world.json("moult status -s open --json").first?["trusted"] == nil)
    }

    @Test func `status --nagios is critical if the installed release was withdrawn`() throws {
        try follow()
        try world.must("moult publish -q public --withdraw 1.0.0 --reason 'wrong totals' --key k.key; moult check -q")
        #expect(
            try world.must("moult status").contains(
                "\nthe installed release was withdrawn by its publisher: wrong totals\n"))
        let check = try world.run("moult status --nagios")
        #expect(check.status == 2)
        #expect(
            check.out.hasPrefix(
                "MOULT CRITICAL - org.example.test 1.0.0; the installed release was withdrawn by its publisher: wrong totals | age="
            ))
    }

    /// If an earlier release that is not withdrawn is kept, `status` suggests a rollback to it.
    @Test func `status suggests a rollback from a withdrawn release only if an older one is not withdrawn`() throws {
        let way = "\nGo back with: moult rollback\n"
        try follow()
        try world.must(
            """
            moult publish -q public rel/test-2.0.0.json --key k.key; moult apply -q
            moult publish -q public --withdraw 2.0.0 --reason 'wrong names' --key k.key; moult check -q
            """)
        #expect(try world.must("moult status").contains(": wrong names\(way)"))
        try world.must("moult publish -q public --withdraw 1.0.0 --reason 'wrong totals' --key k.key; moult check -q")
        #expect(!(try world.must("moult status").contains(way)))
    }

    /// Until a feed expires, stores may rely on it without requesting a newer one.
    @Test func `status reports an expired feed, and ignores a feed that was changed`() throws {
        try follow()
        #expect(try status()["known"]?["expired"]?.bool == false)
        // Feed files are verified only when they are downloaded, so the kept feed is changed together with its recorded digest.
        try world.must(
            """
            cd store/.moult/feed; old=$(sha256sum feed.json | cut -d' ' -f1)
            sed -i 's/"expires":"[^"]*"/"expires":"2020-01-02T03:04:05Z"/; s/"expires": "[^"]*"/"expires": "2020-01-02T03:04:05Z"/' feed.json
            sed -i "s/$old/$(sha256sum feed.json | cut -d' ' -f1)/" seen.json
            """)
        #expect(
            try world.must("moult status").contains(
                "\nthe feed was valid until 2020-01-02T03:04:05Z: an attacker may be withholding newer ones\nCheck for a newer one with: moult check\n"
            ))
        #expect(try status()["known"]?["expired"]?.bool == true)
        let check = try world.run("moult status --nagios")
        #expect(check.status == 1)
        #expect(
            check.out.contains(
                "MOULT WARNING - org.example.test 1.0.0; the feed was valid until 2020-01-02T03:04:05Z |")
        )
        // Files that differ from the verified files are not used.
        try world.must("echo ' ' >> store/.moult/feed/feed.json")
        #expect(try status()["known"] == nil)
    }

    @Test func `status shows the last failure with the reason and the remedy`() throws {
        _ = try world.maker.make(
            "3.0.0", sequence: 3, VerbWorld.databases(["rye"]),
            top: [.init("checks", [["on": "food", "sql": "SELECT count(*) FROM food", "expect": "> 100"]])])
        try world.install(world.first)
        let failed = try world.run("moult apply --json rel/test-3.0.0.json")
        #expect(failed.status == 3)
        let error = try #require(
            try JSON(parsing: String(failed.out.split(separator: "\n").last ?? ""), source: "error")["error"])
        let (what, why) = (error["what"]?.string ?? "?", error["why"]?.string ?? "?")
        let failure = try #require(try status()["failure"])
        #expect(failure["reason"]?.string == "\(what): \(why)")
        #expect(failure["remedy"]?.string == error["now"]?.string)
        #expect(failure["outcome"]?.string == "failed")
        #expect(try world.must("moult status").contains(": \(what): \(why)\n"))
        let check = try world.run("moult status --nagios")
        #expect(check.status == 1)
        #expect(check.out.contains("; the last attempt to update failed at ") && check.out.contains("\(what): \(why)"))
        // A later success supersedes the failure.
        try world.must("moult apply -q rel/test-2.0.0.json")
        #expect(try status()["failure"] == nil)
        #expect(try world.run("moult status --nagios").status == 0)
    }

    @Test func `status names readers of older generations`() throws {
        try world.install(world.first)
        let lease = try Store(at: world.store).lease()
        try world.must("moult apply -q rel/test-2.0.0.json")
        let generation = lease.generation
        let text = try world.must("moult status")
        #expect(text.contains("\npid \(getpid()) ("))
        #expect(text.contains(") still reads generation \(generation)\n"))
        let laggards = try status()["laggards"]?.array
        #expect(laggards?.compactMap { $0["pid"]?.integer } == [Int64(getpid())])
        #expect(laggards?.compactMap { $0["generation"]?.string } == [generation])
        // Without a configured wait for readers, no reader counts as late.
        #expect(try world.run("moult status --nagios").status == 0)
        try world.must("sed -i '1a \"waitForReaders\": 1,' store/moult.json")
        #expect(try world.run("moult status --nagios").status == 1)
        withExtendedLifetime(lease) {}
    }

    @Test func `consumers are listed`() throws {
        try world.install(world.first)
        try world.must(
            """
            sed -i '1a "consumers": [{"name":"api","databases":["food"],"command":{"reload":["true"]}}, {"name":"web","command":{"reload":["true"]}}],' store/moult.json
            """)
        #expect(
            try world.must("moult status").hasSuffix(
                "\n\nConsumers:\n  api  by command  food\n  web  by command  every database\n"))
        #expect(try status()["consumers"]?.array?.compactMap { $0["name"]?.string } == ["api", "web"])
    }

    // MARK: monitoring

    @Test func `status --nagios prints one line with its exit status`() throws {
        #expect(
            try world.run("moult status --nagios --store nowhere") == (
                3,
                "MOULT UNKNOWN - \(world.scratch.path("nowhere")) is not a store: it has no moult.json\n", ""
            ))
        try world.install()
        let empty = try world.run("moult status --nagios")
        #expect(empty.status == 2)
        #expect(
            empty.out
                == "MOULT CRITICAL - org.example.test; nothing is installed | generations=0 bytes=0B laggards=0\n")
        try world.must("moult apply -q rel/test-1.0.0.json")
        let sound = try world.run("moult status --nagios")
        #expect(sound.status == 0)
        #expect(sound.out.hasPrefix("MOULT OK - org.example.test 1.0.0 | age="))
        #expect(
            sound.out.hasSuffix(
                "s generations=1 bytes=\(try status()["generations"]?.array?[0]["size"]?.integer ?? 0)B laggards=0\n"))
        #expect(try world.run("moult status --nagios -q") == (0, "", ""))
        try world.must("moult hold -q --reason 'a|b'")
        #expect(
            try world.run("moult status --nagios").out.hasPrefix(
                "MOULT WARNING - org.example.test 1.0.0; every release is on hold: a/b | age="))
        try world.must("rm store/user.db")
        let broken = try world.run("moult status --nagios")
        #expect(broken.status == 2)
        #expect(
            broken.out.hasPrefix(
                "MOULT CRITICAL - org.example.test 1.0.0; \(world.store)/user.db: it is missing; every release"
            ))
    }

    @Test func `status --prometheus has the numbers of status`() throws {
        try follow()
        try world.must("moult publish -q public rel/test-2.0.0.json --key k.key; moult apply -q; rm store/user.db")
        let status = try status()
        let lines = try world.must("moult status --prometheus").split(separator: "\n").map(String.init)
        var values: [String: Int64] = [:]
        var described: Set<String> = []
        for line in lines {
            let words = line.split(separator: " ")
            if line.hasPrefix("# HELP ") {
                #expect(described.insert(String(words[2])).inserted, "described twice: \(line)")
            } else if line.hasPrefix("# TYPE ") {
                #expect(words.count == 4 && words[3] == "gauge")
            } else {
                let name = String(try #require(line.firstIndex(of: "{").map { line[..<$0] }))
                #expect(described.contains(name))
                #expect(line.hasPrefix("\(name){store=\"\(world.store)\""))
                let value = try #require(words.last.flatMap { Double($0) })
                #expect(
                    values.updateValue(Int64(value), forKey: line.replacing(" \(words.last ?? "")", with: "")) == nil)
            }
        }
        func value(_ name: String, _ labels: String = "") -> Int64? {
            values["moult_\(name){store=\"\(world.store)\"\(labels)}"]
        }
        #expect(value("installed") == 1)
        #expect(value("state") == 2)
        #expect(value("feed_serial") == status["known"]?["serial"]?.integer)
        #expect(value("newer") == 0)
        #expect(value("hold") == 0)
        #expect(value("database_sound", ",database=\"food\",kind=\"reference\"") == 1)
        #expect(value("database_sound", ",database=\"user\",kind=\"user\"") == 0)
        #expect(
            value("installed_timestamp_seconds")
                == status["since"]?.string.flatMap { Timestamp($0) }.map { Int64($0.seconds) })
        let generations = try #require(status["generations"]?.array)
        #expect(generations.count == 2)
        for generation in generations {
            let (name, current) = (generation["name"]?.string ?? "", generation["current"]?.bool ?? false)
            #expect(
                value("generation_bytes", ",generation=\"\(name)\",current=\"\(current)\"")
                    == generation["size"]?.integer)
        }
        let generation = status["generation"]?.string ?? ""
        #expect(
            value("info", ",product=\"org.example.test\",version=\"2.0.0\",generation=\"\(generation)\"") == 1)
    }

    @Test func `label values of metrics are escaped`() throws {
        try world.must(#"moult init -q 'a"b\c' --product org.example.test"#)
        #expect(
            try world.must(#"moult status --prometheus --store 'a"b\c'"#).contains(
                #"moult_installed{store="\#(world.scratch.path(#"a\"b\\c"#))"} 0"# + "\n"))
    }

    @Test func `status --prometheus --output replaces the file as a whole`() throws {
        try world.install(world.first)
        try world.must("echo old > app.prom; moult status --prometheus --output app.prom")
        #expect(try world.must("cat app.prom") == world.must("moult status --prometheus"))
        let missing = try world.run("moult status --prometheus --output missing/app.prom")
        #expect(missing.status != 0 && missing.err.contains("cannot write missing/app.prom"))
        #expect(try world.run("moult status --output app.prom").status == 64)
    }

    @Test(arguments: ["--json --nagios", "--json --prometheus", "--prometheus --nagios"])
    func `output formats cannot be combined`(_ forms: String) throws {
        try world.install(world.first)
        let run = try world.run("moult status \(forms)")
        #expect(run.status == 64)
        #expect((run.out + run.err).contains("cannot be used together"))
    }
}
