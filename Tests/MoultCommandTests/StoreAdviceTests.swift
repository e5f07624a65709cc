import MoultBasics
import TestSupport
import Testing

/// The command in the advice of an error works in the user's directory, and specifies the store as the command line
/// did.
@Suite struct StoreAdviceTests {
    private let world: VerbWorld
    init() throws { world = try VerbWorld() }

    @Test func `suggested commands specify the store as the command line did`() throws {
        try world.install(world.first)
        try world.must("moult hold -q --reason audit; mv store 'our store'")
        let said = try world.run("moult apply --store 'our store' rel/test-2.0.0.json")
        #expect(
            said
                == (
                    3, "",
                    "moult: error: every release is on hold: audit\n  Remove the hold with: moult unhold '*' --store 'our store'\n"
                ))
        // The suggested command must work.
        try world.must("moult unhold --store 'our store'; moult apply -q --store 'our store' rel/test-2.0.0.json")
    }

    @Test func `each of several suggested commands specifies the store`() throws {
        try world.install(world.first, world.second)
        let older = "moult apply rel/test-1.0.0.json"
        let said = try world.json("\(older) --json --store store").last
        #expect(
            said?["error"]?["now"]?.string
                == "To install it anyway: moult apply rel/test-1.0.0.json --allow-downgrade --store store. To roll back instead: moult rollback --store store"
        )
        let here = try world.run(older)
        #expect(
            here.err.hasSuffix(
                "\n  To install it anyway: moult apply rel/test-1.0.0.json --allow-downgrade. To roll back instead: moult rollback\n"
            ))
    }

    @Test func `advice for a missing store is not changed`() throws {
        let none = world.scratch.path("none")
        let said = try world.run("moult status --store none")
        #expect(
            said.err.hasSuffix(
                "\n  Create one with: moult init \(none) --product NAME, or with the first release: moult apply --create RELEASE --store none\n"
            ), "\(said.err)")
        try world.install()
        let bundle = try world.run("moult apply --store store rel/test-1.0.0.tar.zst")
        #expect(
            bundle.err.hasSuffix(
                "\n  Install the release from its manifest: moult apply rel/test-1.0.0.json --store store\n"
            ))
        let usage = try world.run("moult history --store store extra")
        #expect(usage.err.hasSuffix("\n  Try: moult history --help\n"))
    }
}
