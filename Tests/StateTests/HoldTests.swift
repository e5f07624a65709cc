import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// `hold` and `unhold`: a set of versions and ranges, separate from the operator's settings.
@Suite struct HoldTests {
    @Test func `several versions and ranges can be on hold`() throws {
        let store = try ReleasesStore(1)
        try store.make("1.5.0", sequence: 11)
        try store.make("2.1.0-beta.1", sequence: 12)
        try store.make("2.1.0", sequence: 13)
        try store.make("3.0.0", sequence: 14)
        try store.must("moult hold 3.0.0 9.9.9 --reason broken; moult hold '>=2 <3' --reason 'not tested'")
        let all = ["3.0.0: broken", "9.9.9: broken", ">=2 <3: not tested"]
        #expect(try store.holds() == all)
        for (version, reason, command) in [
            ("3.0.0", "broken", "moult unhold 3.0.0"), ("2.1.0", "not tested", "moult unhold '>=2 <3'"),
            ("2.1.0-beta.1", "not tested", "moult unhold '>=2 <3'"),
        ] {
            for verb in ["apply", "plan"] {
                let ended = try store.run("moult \(verb) \(store.manifest(version))")
                #expect(ended.status == 3)
                #expect(
                    ended.errors
                        == "moult: error: release \(version) is on hold: \(reason)\n  Remove the hold with: \(command)\n"
                )
            }
        }
        let plan = try store.json("moult plan --json \(store.manifest("1.5.0"))")
        #expect(try store.holds(in: plan) == all)
        let text = try store.run("moult plan \(store.manifest("1.5.0"))").output
        for line in ["3.0.0 is on hold: broken", ">=2 <3 is on hold: not tested"] {
            #expect(text.contains("\n\(line)\n"))
            #expect(try store.must("moult status").contains("\n\(line)\n"))
        }
    }

    @Test func `the suggested command removes the hold from any directory`() throws {
        let store = try ReleasesStore(2, installed: 1)
        try store.must("mv store 'our store'; moult hold -q '2 || 7' --reason x --store 'our store'")
        let errors = try store.run("moult apply --store 'our store' \(store.manifest("2.0.0"))").errors
        let command = try #require(errors.firstRange(of: "with: ").map { errors[$0.upperBound...].dropLast() })
        #expect(command == "moult unhold '2 || 7' --store 'our store'")
        try store.must("cd /; cd - >/dev/null; \(command)")
        try store.must("moult apply -q --store 'our store' \(store.manifest("2.0.0"))")
    }

    @Test func `unhold removes only the named holds`() throws {
        let store = try ReleasesStore(1)
        try store.must("moult hold 2.0.0 3.0.0 '>=5' --reason r -q")
        let several = try store.run("moult unhold")
        #expect(several.status == 3 && several.errors.contains("moult unhold --all"))
        let covered = try store.run("moult unhold 2.0.0 6.0.0")
        #expect(covered.status == 3)
        #expect(covered.errors.hasSuffix("Remove the hold with: moult unhold '>=5'\n"))
        #expect(try store.holds().count == 3)
        #expect(try store.must("moult unhold 4.0.0").hasPrefix("nothing to do: 4.0.0 is not on hold\n"))
        let json = try store.json("moult unhold --json 2.0.0 '>=5'")
        #expect(json["removed"]?.array?.count == 2)
        #expect(json["before"]?["release"]?.string == "2.0.0")
        #expect(try store.holds() == ["3.0.0: r"])
        #expect(try store.must("moult unhold") == "the hold on 3.0.0 was removed\n")
        #expect(try store.must("moult unhold; moult unhold --all").hasSuffix("nothing to do: nothing is on hold\n"))
        #expect(try store.run("moult unhold --all 2.0.0").status == 64)
        #expect(try store.run("moult hold x.y --reason r").status == 64)
        #expect(try store.run("moult hold 2.0.0").status == 64)
    }

    @Test func `no command writes moult.json`() throws {
        let store = try ReleasesStore(
            3,
            settings: #""keep": 9, "steps": { "acme.touch": { "executable": "/bin/true" } }"#)
        try store.must(
            """
            cd store; chmod 600 moult.json; mv moult.json ../settings.json; ln -s ../settings.json moult.json
            cp -p ../settings.json ../before.json
            """)
        try store.must(
            """
            moult hold 9.0.0 --reason a -q; moult rollback -q --reason b; moult unhold -q 9.0.0; moult unhold --all -q
            moult apply -q \(store.manifest("3.0.0")); moult steps trust acme.touch -q; moult recover -q; moult clean -q
            """)
        try store.must("cmp settings.json before.json && [ -h store/moult.json ]")
        #expect(try store.must("stat -c '%a %i' settings.json").hasPrefix("600 "))
        let steps = try store.json("moult steps --json")["steps"]?.array ?? []
        #expect(steps.contains { $0["name"]?.string == "acme.touch" && $0["state"]?.string != "not trusted" })
    }

    @Test func `a hold in moult.json applies until it is removed`() throws {
        let old = #"{ "release": "2.0.0", "reason": "old", "since": "2026-01-01T00:00:00Z" }"#
        let store = try ReleasesStore(3, installed: 1, settings: #""keep": 9, "hold": \#(old)"#)
        #expect(try store.holds() == ["2.0.0: old"])
        #expect(try store.run("moult apply \(store.manifest("2.0.0"))").status == 3)
        try store.must("moult hold 3.0.0 --reason new -q")
        #expect(try store.holds() == ["2.0.0: old", "3.0.0: new"])
        try store.must("moult unhold -q 2.0.0")
        #expect(try store.holds() == ["3.0.0: new"])
        #expect(try store.must("cat store/moult.json").contains(old))
        try store.must("moult apply -q \(store.manifest("2.0.0"))")
        // A hold that an older moult or the operator writes there later applies again.
        try store.must("sed -i 's/\"release\": \"2.0.0\"/\"release\": \"4.0.0\"/' store/moult.json")
        #expect(try store.holds() == ["3.0.0: new", "4.0.0: old"])
        try store.must("moult unhold --all -q")
        #expect(try store.holds() == [])
    }

    @Test func `reasons of holds and rollbacks are in the history`() throws {
        let store = try ReleasesStore(2)
        try store.must("moult hold '>=3' --reason 'too new' -q; moult rollback -q --reason 'names are missing'")
        try store.must("moult unhold -q 2.0.0")
        let text = try store.must("moult history")
        #expect(text.contains("rollback 2.0.0 -> 1.0.0 done"))
        #expect(text.contains(": names are missing\n"))
        #expect(text.contains("hold >=3 done: too new\n"))
        let entries = try store.json("moult history --json")["entries"]?.array ?? []
        #expect(entries.prefix(3).map { $0["reason"]?.string } == [nil, "names are missing", "too new"])
        #expect(entries.prefix(3).map { $0["holds"]?.array?.count } == [1, 2, 1])
        // `status` shows the newest update or rollback, not a hold.
        #expect(try store.json("moult status --json")["last"]?["action"]?.string == "rollback")
    }

    @Test func `a hold does not hide a failed update`() throws {
        let store = try ReleasesStore(2, installed: 1)
        try store.must(
            """
            ! strace -f -o trace -e trace=renameat2 -e inject=renameat2:error=EIO:when=3 \
            moult apply -q \(store.manifest("2.0.0"))
            """)
        let failure = try #require(try store.json("moult status --json")["failure"])
        try store.must("moult hold 7.0.0 --reason x -q")
        #expect(try store.json("moult status --json")["failure"] == failure)
    }

    /// Two commands run at the same time: the lock serializes them, and both holds are kept.
    @Test func `holds placed at the same time are all kept`() throws {
        let store = try ReleasesStore(1)
        try store.must("for i in 1 2 3 4 5 6 7 8; do moult hold $i.1.0 --reason r -q --wait 60 & done; wait")
        #expect(try Set(store.holds()) == Set((1...8).map { "\($0).1.0: r" }))
    }

    @Test func `an update from a feed skips every release on hold`() throws {
        for follow in ["newer", "match"] {
            let store = try ReleasesStore(3, installed: 1)
            try store.must(
                """
                moult keygen a --no-password -q; moult publish public rel/test-*.json -q -k a.key
                key=$(tail -n 1 a.pub)
                sed -i "s|\\"keep\\": 9|\\"keep\\": 9, \\"follow\\": \\"\(follow)\\", \\"feed\\": { \\"url\\": \\"$PWD/public/feed.json\\" }, \
                \\"keys\\": { \\"threshold\\": 1, \\"trusted\\": [ { \\"key\\": \\"$key\\" } ] }|" store/moult.json
                moult hold -q 2.0.0 --reason 'also bad'; moult apply -q; moult rollback -q --reason bad; moult apply -q
                """)
            #expect(try store.version() == "1.0.0")
            try store.must("moult unhold -q 3.0.0; moult apply -q")
            #expect(try store.version() == "3.0.0")
            try store.must("moult rollback -q --reason bad; moult apply -q")
            #expect(try store.version() == "1.0.0")
            let check = try store.json("moult check --json")
            #expect(try store.holds(in: check) == ["2.0.0: also bad", "3.0.0: bad"])
            #expect(try store.run("moult check").output.contains("2.0.0 is on hold: also bad\n3.0.0 is on hold: bad\n"))
            #expect(
                check["skipped"]?.array?.map { $0["why"]?.string } == ["it is on hold: bad", "it is on hold: also bad"])
        }
    }
}
