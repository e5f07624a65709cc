import Moult
import MoultBasics
import MoultFiles
import StepKit
import TestSupport
import Testing

/// Files of format 1 are read as before.
@Suite struct GoldenFormatTests {
    let golden = Golden()

    @Test(arguments: [1, 2, 3])
    func `drafts and manifests of format 1 are read`(number: Int) throws {
        let draft = try Manifest(
            parsing: Files.read(golden.path("draft-\(number).0.0.json"), limit: 1 << 20) ?? [], as: .draft,
            source: "draft")
        let sealed = try Manifest(
            parsing: Files.read(golden.release(number), limit: 1 << 20) ?? [], as: .sealed, source: "manifest")
        #expect(draft.version == sealed.version)
        #expect(draft.databases.map(\.name) == sealed.databases.map(\.name))
        #expect(sealed.databases.map(\.kind) == [.reference, .shared, .shared, .user, .cache])
        #expect(sealed.databases.map(\.preserve.count) == [0, 1, 1, 0, 0])
        #expect(sealed.checks.count == 1 && sealed.budget.count == 1)
    }

    /// The bundles are unpacked and verified, from the first release to the last.
    @Test func `releases of format 1 are installed`() throws {
        let scratch = try Scratch()
        let store = Store(at: scratch.path("store"))
        for number in 1...3 {
            try store.updateBlocking(to: golden.release(number))
            #expect(try store.lease().version == "\(number).0.0")
        }
        #expect(
            try Verifier(StoreSnapshot(StoreLayout(root: store.directory))).verify(deep: true).compactMap(\.finding)
                == [])
    }

    /// Only signed content is accepted.
    @Test func `a feed and a key of format 1 are accepted`() throws {
        let scratch = try Scratch()
        let moult = try BuiltMoult.path()
        let store = scratch.path("store")
        try Shell.must([moult, "init", store, "--product", "org.example.golden", "--key", golden.path("golden.pub")])
        try Shell.must([moult, "apply", "--store", store, "--feed", golden.path("feed/feed.json")])
        #expect(try Store(at: store).lease().version == "2.0.0")
        // A store also accepts the manifest's own signature, and refuses the second manifest, which has none.
        let signed = scratch.path("signed")
        try Shell.must([moult, "init", signed, "--product", "org.example.golden", "--key", golden.path("golden.pub")])
        try Shell.must([moult, "apply", "--store", signed, golden.release(1)])
        #expect(try Shell.run([moult, "apply", "--store", signed, golden.release(2)]).status == 3)
    }

    /// A saved plan keeps its meaning. A different store refuses the plan as out of date.
    @Test func `a saved plan of format 1 is read`() throws {
        let json = try golden.json("update.plan")
        let plan = try Plan(json: json, source: "update.plan")
        // Everything except the effects is unchanged. The texts of effects are different now, and so is the reason why
        // old content is kept.
        #expect(plan.json.setting("effects", to: nil) == json.setting("effects", to: nil))
        func changes(_ json: JSON) -> [[String?]] {
            (json["effects"]?.array ?? []).map {
                [
                    $0["phase"]?.string, $0["database"]?.string, $0["change"]?["do"]?.string,
                    $0["change"]?["path"]?.string,
                ]
            }
        }
        #expect(changes(plan.json) == changes(json))
        #expect(try Plan(json: plan.json, source: "again") == plan)
        #expect(plan.to.version == Version(2, 0, 0))
        #expect(plan.effects.contains { if case .migrate = $0.change { true } else { false } })
        let scratch = try Scratch()
        let store = scratch.path("store")
        try Store(at: store).updateBlocking(to: golden.release(1))
        let ended = try Shell.run([BuiltMoult.path(), "apply", "--store", store, "--plan", golden.path("update.plan")])
        #expect(ended.status == 4, "\(ended)")
    }
}
