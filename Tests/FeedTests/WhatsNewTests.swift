import Moult
import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Tests the notes of the releases that a feed offers.
@Suite struct WhatsNewTests {
    @Test func `the notes of all releases after the installed one are returned, oldest first`() async throws {
        let bench = try Bench()
        try bench.key("a")
        let notes: [JSON?] = ["first", "two words", nil, "four"]
        for (index, text) in notes.enumerated() {
            let release = try bench.release(
                "\(index + 1).0.0", sequence: index + 1, top: text.map { [.init("notes", $0)] } ?? [])
            try bench.must("moult publish public \(release) -k a.key -q")
        }
        try bench.must("moult init --product org.example.test --key a.pub -q")
        let store = Store(at: bench.path("store"))
        try store.setFeed(bench.path("public/feed.json"))
        try bench.must("moult apply 1.0.0 -q")
        #expect(try store.notes == "first")
        let new = try await store.whatsNew()
        #expect(new.map { "\($0.version): \($0.notes)" } == ["2.0.0: two words", "4.0.0: four"])
        try await store.follow()
        #expect(try await store.whatsNew() == [])
        #expect(try store.notes == "four")
    }

    @Test func `notes that are too long are refused`() throws {
        let bench = try Bench()
        let release = try bench.release(
            "1.0.0", sequence: 1, top: [.init("notes", .string(String(repeating: "x", count: 16_385)))])
        #expect(
            try bench.refusal("moult inspect \(release)", status: 1).contains(
                "notes has 16385 bytes, and the limit is 16384"))
    }
}
