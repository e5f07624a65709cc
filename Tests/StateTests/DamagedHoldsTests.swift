import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// If the record of holds cannot be read, every release counts as on hold, and the suggested command rebuilds the
/// record.
@Suite(.tags(.thorough)) struct DamagedHoldsTests {
    static let damages = [
        "rm $H", ": > $H", "echo garbage > $H", "head -c 40 $H > x; cp x $H", "echo '{\"format\":1}' > $H",
        "echo '{\"format\":9,\"holds\":[]}' > $H", "rm $H; mkdir $H", "rm $H; mkdir $H; touch $H/file",
        "rm $H; mkfifo $H", "rm $H; ln -s nowhere $H", "rm $H; ln -s holds.json $H",
        "echo '{\"format\":1,\"holds\":[{\"release\":\"what\"}]}' > $H", "truncate -s 3M $H",
    ]

    private func damaged(_ damage: String) throws -> ReleasesStore {
        let store = try ReleasesStore(3)
        try store.must("moult rollback -q --reason bad; moult hold -q '>=7' --reason 'too new'")
        try store.must("H=\(store.record); \(damage)")
        return store
    }

    @Test(arguments: damages) func `a damaged hold record blocks every release until it is rebuilt`(_ damage: String)
        throws
    {
        let store = try damaged(damage)
        try store.make("4.0.0", sequence: 40)
        let before = try Tree(store.path, skipping: [".moult/lock", ".moult/history.jsonl"])
        for line in [
            "moult apply \(store.manifest("4.0.0"))", "moult rollback", "moult plan \(store.manifest("4.0.0"))",
        ] {
            let ended = try store.run("timeout 20 \(line)")
            #expect(ended.status == 3, "\(line)")
            #expect(ended.errors.contains("every release is on hold: ") && ended.errors.contains(store.record))
            #expect(ended.errors.hasSuffix("  Rebuild the record from the history: moult recover\n"))
        }
        let status = try store.must("timeout 20 moult status")
        #expect(
            status.contains("every release is on hold: ") && status.contains("rebuild the record with: moult recover"))
        #expect(try store.json("moult status --json")["hold"]?["release"]?.string == "*")
        #expect(try store.run("moult status --nagios").status == 2)
        #expect(try Tree(store.path, skipping: [".moult/lock", ".moult/history.jsonl"]) == before)
        try store.must("timeout 20 moult recover")
        #expect(try store.holds() == ["3.0.0: bad", ">=7: too new"])
        try store.must("moult apply -q \(store.manifest("4.0.0"))")
    }

    @Test func `hold and unhold first rebuild a damaged hold record`() throws {
        let store = try damaged(": > $H")
        try store.must("moult hold -q 8.0.0 --reason x")
        #expect(try store.holds() == ["3.0.0: bad", ">=7: too new", "8.0.0: x"])
        try store.must("echo x > \(store.record); moult unhold -q '>=7'")
        #expect(try store.holds() == ["3.0.0: bad", "8.0.0: x"])
        try store.must("echo x > \(store.record); moult unhold -q --all")
        #expect(try store.holds() == [])
    }

    @Test(arguments: ["rm $L", ": > $L", "echo garbage >> $L", "rm $L; mkdir $L", "rm $L; mkfifo $L"])
    func `a hold record that is rebuilt from an incomplete history blocks every release`(_ damage: String) throws {
        let store = try damaged(": > $H")
        try store.must("L=\(store.path)/.moult/history.jsonl; \(damage)")
        try store.must("timeout 20 moult recover")
        #expect(try store.json("moult status --json")["hold"]?["release"]?.string == "*")
        try store.must("timeout 20 moult apply \(store.manifest("3.0.0"))", status: 3)
        try store.must("rm -rf \(store.path)/.moult/history.jsonl; moult unhold -q --all")
        try store.must("moult apply -q \(store.manifest("3.0.0"))")
    }

    @Test func `a feed is not followed while the hold record is damaged`() throws {
        let store = try damaged("echo x > $H")
        try store.must(
            """
            moult keygen a --no-password -q; moult publish public rel/test-*.json -q -k a.key
            sed -i "s|\\"keep\\": 9|\\"keep\\": 9, \\"feed\\": { \\"url\\": \\"$PWD/public/feed.json\\" }, \
            \\"keys\\": { \\"threshold\\": 1, \\"trusted\\": [ { \\"key\\": \\"$(tail -n 1 a.pub)\\" } ] }|" store/moult.json
            """)
        for verb in ["check", "apply", "plan"] {
            let ended = try store.run("moult \(verb)")
            #expect(ended.status == 3 && ended.errors.hasSuffix("moult recover\n"), "\(verb): \(ended.errors)")
        }
        #expect(try store.version() == "2.0.0")
    }

    @Test(.enabled(if: geteuid() == 0, "only root can become another user"))
    func `status shows every release on hold to a user who cannot read the hold record`() throws {
        let store = try damaged("chmod 600 $H")
        // Another user cannot execute the command in the directory of the build.
        try store.must("cp $(which moult) .; chmod -R o+rX .; chmod 755 .; chmod 600 \(store.record)")
        let status = try store.must("setpriv --reuid 65534 --clear-groups ./moult status --store \(store.path)")
        #expect(status.contains("every release is on hold: "), "\(status)")
    }
}
