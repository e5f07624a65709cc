import Moult
import MoultBasics
import MoultFiles
import StepKit
import TestSupport
import Testing

/// Tests what verbs report and do after a crash has interrupted an update.
@Suite struct RecoverVerbTests {
    private let world: VerbWorld
    init() throws { world = try VerbWorld() }

    /// Moves the store to `crashed` at the first matching event. The update can then no longer change the store, which stays as
    /// a crash at that moment would have left it.
    private func crash(when matches: @escaping @Sendable (Event) -> Bool) throws {
        try world.install(world.first)
        let (store, crashed) = (world.store, world.scratch.path("crashed"))
        let watcher = Watcher(tell: { event in
            guard matches(event) else { return }
            #expect(throws: Never.self) { try Files.rename(store, to: crashed) }
            PinnedDirectory.forget("\(store)/.moult")
        })
        #expect(throws: MoultError.self) {
            try Orchestrator(root: store, steps: .builtIn, watcher: watcher).update(
                ReleaseFile(world.scratch.path(world.second)))
        }
        try #require(try Files.facts(store) == nil)
    }

    private func crashAfterSwitch() throws {
        try crash {
            guard case .done(.apply, let effect) = $0, case .switchCurrent = effect.change else { return false }
            return true
        }
    }

    @Test func `status and plan report an unfinished update`() throws {
        try crashAfterSwitch()
        let tree = try Tree(world.scratch.path("crashed"))
        let status = try world.must("moult status --store crashed")
        #expect(
            status.contains("\nan update to 2.0.0 is unfinished\nFinish it with: moult recover --store crashed\n"))
        let json = try #require(try world.json("moult status --json --store crashed").first)
        #expect(json["unfinished"]?.array == ["an update to 2.0.0"])
        let plan = try world.run("moult plan rel/test-2.0.0.json --store crashed")
        #expect(plan.status == 2)
        #expect(plan.out == "2.0.0 is installed\n")
        #expect(
            plan.err
                == "moult: warning: an update to 2.0.0 is unfinished; the next command that writes finishes or undoes it first, and this plan may change\n"
        )
        #expect(try world.run("moult verify --store crashed").status == 1)
        #expect(try Tree(world.scratch.path("crashed")) == tree)
    }

    @Test func `status names the process of a running update and does not suggest recovery`() throws {
        try crashAfterSwitch()
        let layout = try StoreLayout(root: world.scratch.path("crashed"))
        let lock = try #require(try FileLock.take(layout.lock, .exclusive))
        let status = try world.must("moult status --store crashed")
        #expect(status.contains("\nan update to 2.0.0 is running: pid "))
        #expect(!status.contains("moult recover"))
        let verified = try world.run("moult verify --store crashed")
        #expect(verified.status == 0 && verified.out.contains("an update to 2.0.0 is running: pid "), "\(verified)")
        withExtendedLifetime(lock) {}
    }

    @Test func `recover finishes an update`() throws {
        try crashAfterSwitch()
        #expect(
            try world.must("moult recover --store crashed")
                == "an update to 2.0.0 was interrupted halfway, and is now finished\n")
        #expect(try world.must("moult recover --store crashed") == "nothing to do: no update is unfinished\n")
        #expect(try world.must("moult verify --store crashed").hasSuffix("all sound\n"))
        #expect(try world.must("moult sql --store crashed 'SELECT count(*) AS n FROM food'") == "n\n3\n")
        #expect(
            try world.must("moult history -n 1 --store crashed").contains(
                " update 1.0.0 -> 2.0.0 finished after an interruption: "))
    }

    @Test func `recover --undo undoes an update`() throws {
        try crashAfterSwitch()
        let json = try #require(try world.json("moult recover --undo --json --store crashed").first)
        #expect(json["recovered"]?.array?.compactMap { $0["ending"]?.string } == ["undone"])
        #expect(try world.must("moult sql --store crashed 'SELECT count(*) AS n FROM food'") == "n\n2\n")
        #expect(try world.must("moult verify --store crashed").hasSuffix("all sound\n"))
    }

    @Test func `apply first recovers an unfinished update, and reports the recovery`() throws {
        try crashAfterSwitch()
        #expect(
            try world.must("moult apply rel/test-2.0.0.json --store crashed") == """
                an update to 2.0.0 was interrupted halfway, and is now finished
                nothing to do: 2.0.0 is installed

                """)
    }

    @Test func `an update that was interrupted before the decision has changed nothing`() throws {
        try crash {
            guard case .phase(.prepare, .attach) = $0 else { return false }
            return true
        }
        let events = try world.json("moult apply rel/test-2.0.0.json --store crashed --json")
        #expect(events.first?["event"]?.string == "recovered")
        #expect(events.first?["ending"]?.string == "cleaned")
        #expect(
            events.first?["text"]?.string
                == "an update to 2.0.0 was interrupted before it changed anything; its staged files were removed")
        #expect(events.last?["changed"]?.bool == true)
    }
}
