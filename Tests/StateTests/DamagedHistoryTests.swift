import MoultBasics
import TestSupport
import Testing

/// A damaged history stops no command, and `moult recover` repairs it.
@Suite(.tags(.thorough)) struct DamagedHistoryTests {
    /// The kinds of damage, and the number of lines of the history that remain readable.
    static let damages = [
        ("echo garbage >> $L", 2), ("printf '{\"time\":\"20' >> $L", 2), ("sed -i '1s/done/what/' $L", 1),
        ("(printf '{\"time\":\"'; head -c 3000000 /dev/zero | tr '\\0' a; echo '\"}') >> $L", 2),
        ("(head -c 4096 /dev/zero; cat $L) > x; cp x $L", 1), ("truncate -s 2M $L", 2), ("echo '[]' >> $L", 2),
        ("rm $L; mkdir $L", 0), ("rm $L; mkdir $L; touch $L/file", 0), ("rm $L; mkfifo $L", 0),
        ("truncate -s 80M $L", 2),
    ]

    private func history(_ store: ReleasesStore) throws -> [String] {
        try store.json("moult history --json")["entries"]?.array?.compactMap { $0["action"]?.string } ?? []
    }

    @Test(arguments: damages)
    func `every command suggests the repair of a damaged history and uses the readable entries`(
        damage: String, left: Int
    ) throws {
        let store = try ReleasesStore(2)
        try store.make("3.0.0", sequence: 30)
        try store.must("L=store/.moult/history.jsonl; \(damage)")
        if left == 0 {
            let status = try store.run("moult status; moult status --nagios")
            #expect(status.output.contains("Repair the history with: moult recover\n"), "\(status)")
            #expect(status.status == 1 && status.output.contains("MOULT WARNING - "), "\(status)")
        }
        for verb in ["history", "status --deep"] {
            let ended = try store.run("timeout 300 moult \(verb)")
            #expect((ended.output + ended.errors).contains("moult recover"), "\(verb): \(ended)")
            #expect(left > 0 && verb == "history" && ended.status == 0 || ended.status == 1 || damage.contains("80M"))
        }
        // A damaged history does not prevent an update.
        let update = try store.run("timeout 300 moult apply -q \(store.manifest("3.0.0"))")
        #expect(update.status == 0, "\(update)")
        #expect(try store.version() == "3.0.0")
        try store.must("timeout 300 moult recover")
        #expect(try store.must("moult status --deep").hasSuffix(": sound\n"))
        let actions = try history(store)
        // Each command removes an incomplete last line. Other damage is reported by a line in the history.
        #expect(actions.count { $0 == "update" } == left + 1, "\(actions)")
        #expect(try store.run("moult history").errors == "")
        #expect(actions.contains("repair history") || damage.contains("printf '{") || damage.contains("truncate"))
    }

    /// The lost lines may have contained holds, so the new history records all current holds.
    @Test func `a hold survives a repair of the history and a later loss of the hold record`() throws {
        let store = try ReleasesStore(2)
        try store.must("moult hold -q 3.0.0 --reason bad; sed -i 's/hold 3/hold\\x00 3/' store/.moult/history.jsonl")
        try store.must("moult recover; echo garbage > \(store.record); moult recover")
        #expect(try store.holds() == ["3.0.0: bad"])
    }

    @Test func `the damaged history file is kept next to the databases`() throws {
        let store = try ReleasesStore(1)
        try store.must("echo garbage >> store/.moult/history.jsonl")
        let text = try store.run("moult recover")
        #expect(text.errors.contains("was damaged and was repaired; the damaged file was kept as "))
        #expect(try store.must("tail -n 1 store/history.jsonl.damaged") == "garbage\n")
        try store.must("echo again >> store/.moult/history.jsonl; moult recover")
        #expect(try store.must("tail -n 1 store/history.jsonl.damaged.2") == "again\n")
    }
}
