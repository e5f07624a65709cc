import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// `rollback` and holds: a bad release is not installed again, and its hold is part of the transaction.
@Suite struct HeldRollbackTests {
    @Test func `repeated rollbacks go to older releases and keep every hold`() throws {
        let store = try ReleasesStore(5)
        for number in 1...4 {
            try store.must("moult rollback -q --reason 'bad \(number)'")
            #expect(try store.version() == "\(5 - number).0.0")
        }
        #expect(try store.holds() == ["5.0.0: bad 1", "4.0.0: bad 2", "3.0.0: bad 3", "2.0.0: bad 4"])
        let last = try store.run("moult rollback")
        #expect(last.status == 3 && last.errors.contains("no kept release is older than 1.0.0"))
        #expect(try store.version() == "1.0.0")
    }

    @Test func `rollback skips releases on hold, and is refused if every older release is on hold`() throws {
        let store = try ReleasesStore(4)
        try store.must("moult hold 3.0.0 --reason 'bad totals' -q; moult rollback -q")
        #expect(try store.version() == "2.0.0")
        try store.must("moult hold '<2' --reason 'too old' -q")
        let refused = try store.run("moult rollback")
        #expect(refused.status == 3)
        #expect(
            refused.errors == """
                moult: error: every kept release older than 2.0.0 is on hold: 1.0.0: it is on hold: too old
                  To roll back anyway: moult rollback --to 1.0.0 --force

                """)
        #expect(try store.version() == "2.0.0")
    }

    @Test func `rollback skips withdrawn releases, and status suggests no rollback that would fail`() throws {
        let store = try ReleasesStore(3)
        try store.must("moult publish --allow-unsigned public rel/test-*.json -q")
        func withdraw(_ version: String) throws {
            try store.must(
                "moult publish --allow-unsigned public --withdraw \(version) --reason 'leaks data' -q; moult check -q --feed public"
            )
        }
        try withdraw("2.0.0")
        let plan = try store.run("moult rollback -n")
        #expect(
            (plan.output + plan.errors).contains(
                "release 2.0.0 is skipped, because its publisher withdrew it: leaks data"))
        let named = try store.run("moult rollback -n --to 2.0.0")
        #expect((named.output + named.errors).contains("release 2.0.0 was withdrawn by its publisher: leaks data"))
        try withdraw("3.0.0")
        #expect(try store.run("moult status").output.contains("Go back with: moult rollback"))
        try withdraw("1.0.0")
        #expect(try !store.run("moult status").output.contains("Go back with"))
        let refused = try store.run("moult rollback")
        #expect(refused.status == 3 && refused.errors.contains("is on hold or withdrawn"), "\(refused)")
        #expect(refused.errors.contains("moult rollback --to 2.0.0\n"))
    }

    @Test func `a rollback to a release on hold requires --to and --force`() throws {
        let store = try ReleasesStore(3)
        try store.must("moult rollback -q --reason 'bad totals'")
        let refused = try store.run("moult rollback --to 3.0.0")
        #expect(
            refused.errors == """
                moult: error: release 3.0.0 is on hold: bad totals
                  To roll back anyway: moult rollback --to 3.0.0 --force

                """)
        #expect(refused.status == 3)
        #expect(try store.run("moult rollback --force").status == 64)
        let dry = try store.run("moult rollback --to 3.0.0 --force -n")
        #expect(dry.output.hasSuffix("apply with: moult rollback --to 3.0.0 --force\n"))
        try store.must("moult rollback -q --to 3.0.0 --force --reason 'checked again'")
        #expect(try store.version() == "3.0.0")
        #expect(try store.holds() == ["3.0.0: bad totals", "2.0.0: checked again"])
        // If a release is rolled back again without a reason, its first reason stays.
        try store.must("moult rollback -q")
        #expect(try store.version() == "1.0.0")
        #expect(try store.holds() == ["2.0.0: checked again", "3.0.0: bad totals"])
    }

    @Test func `a hold on every release stops updates but not rollbacks`() throws {
        let store = try ReleasesStore(3, installed: 2)
        try store.must("moult hold --reason holidays -q")
        #expect(try store.run("moult apply \(store.manifest("3.0.0"))").errors.contains("moult unhold '*'"))
        try store.must("moult rollback -q --reason bad")
        #expect(try store.version() == "1.0.0")
        #expect(try store.holds() == ["*: holidays", "2.0.0: bad"])
        #expect(try store.json("moult status --json")["hold"]?["release"]?.string == "*")
    }

    @Test func `an unreadable generation does not prevent a rollback to another generation`() throws {
        let store = try ReleasesStore(3)
        try store.must(
            "d=$(echo store/.moult/generations/1.0.0*); chmod u+w $d $d/manifest.json; echo x > $d/manifest.json")
        try store.must("moult rollback -q")
        #expect(try store.version() == "2.0.0")
    }

    /// Kills a rollback at each call that changes the disk, and then runs `then` to complete the operation.
    private func kill(_ then: String, prepare: String, check: (ReleasesStore, Comment) throws -> Void) throws {
        var fired: [String: Int] = [:]
        let calls = [("renameat2", 1...6), ("fsync", 1...14), ("unlinkat", 1...3), ("write", 1...4)]
        for (call, numbers) in calls {
            for number in numbers {
                let store = try ReleasesStore(2)
                if !prepare.isEmpty { try store.must(prepare) }
                let ended = try store.run(
                    """
                    strace -f -qq -o /dev/null -e trace=\(call) -e inject=\(call):signal=SIGKILL:when=\(number) \
                    moult rollback -q --reason 'bad totals'
                    """)
                if ended.status == 0 { break }
                fired[call, default: 0] += 1
                // The pointer never moves before the hold is recorded.
                if try store.version() == "1.0.0" { #expect(try store.holds().contains("2.0.0: bad totals")) }
                try store.must(then)
                try check(store, "\(call) \(number)")
            }
        }
        #expect(Set(fired.keys) == Set(calls.map(\.0)) && fired.values.reduce(0, +) > 8, "\(fired)")
    }

    @Test(.tags(.thorough)) func `after a kill a release is both rolled back and on hold, or neither`() throws {
        try kill("moult recover -q", prepare: "moult hold -q 7.0.0 --reason other") { store, note in
            let holds = try store.version() == "1.0.0" ? ["7.0.0: other", "2.0.0: bad totals"] : ["7.0.0: other"]
            #expect(try store.holds() == holds, note)
            let history = try store.must("moult history")
            #expect(history.contains("bad totals") || holds.count == 1, note)
        }
    }

    @Test func `undoing a rollback removes its hold and no other`() throws {
        let prepare = "moult hold -q 2.0.0 7.0.0 --reason other"
        try kill("moult recover -q --undo", prepare: prepare) { store, note in
            let holds = Set(try store.holds())
            if try store.version() == "2.0.0" {
                #expect(holds == ["2.0.0: other", "7.0.0: other"], note)
            } else {
                // The undo was already complete.
                #expect(holds == ["2.0.0: bad totals", "7.0.0: other"], note)
            }
        }
    }
}
