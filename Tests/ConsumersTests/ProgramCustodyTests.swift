import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// Root runs no program that another user can change.
@Suite(.enabled(if: geteuid() == 0, "only root may give files away"))
struct ProgramCustodyTests {
    let shop: ConsumerShop

    init() throws {
        shop = try ConsumerShop()
        try shop.store.updateBlocking(to: shop.release(1))
        try Shell.must(["mkdir", shop.scratch.path("bin")])
        try Shell.must([
            "sh", "-c", "printf '#!/bin/sh\\ntouch \(shop.scratch.path("ran"))\\n' > \(program); chmod 755 \(program)",
        ])
        try Shell.must(["chmod", "755", shop.scratch.path])
    }

    private var program: String { shop.scratch.path("bin/hook") }

    /// How another user can change a program.
    static let ways: [(how: String, why: String)] = [
        ("chown 4001 bin/hook", "bin/hook belongs to user #4001"),
        ("chmod 777 bin/hook", "bin/hook is writable by every user"),
        ("chmod 775 bin/hook", "bin/hook is writable by its group"), ("chown 4001 bin", "bin belongs to user #4001"),
        ("chmod 777 bin", "bin is writable by every user"),
        ("mv bin real; mkdir dir; chown 4001 dir; mv real dir/bin; ln -s dir/bin bin", "dir belongs to user #4001"),
        ("mv bin real; ln -s real bin; chown -h 4001 bin", "bin belongs to user #4001"),
        ("mv bin/hook bin/real; ln -s real bin/hook; chown -h 4001 bin/hook", "bin/hook belongs to user #4001"),
    ]

    private func setUp(_ how: String) throws { try Shell.must(["sh", "-ec", how], in: shop.scratch.path) }

    private func expectRefused(_ ended: Shell.Ended, _ why: String) throws {
        #expect(ended.status == 3, "\(ended)")
        let text = ended.errors.replacing(/\s+/, with: " ")
        #expect(text.contains("root does not run \(program): \(shop.scratch.path)/\(why)"), "\(ended)")
        #expect(try Files.facts(shop.scratch.path("ran")) == nil)
    }

    @Test(arguments: ways.indices) func `a consumer's program that another user can change is not run`(_ index: Int)
        throws
    {
        let (how, why) = Self.ways[index]
        try set([.string(program)])
        try setUp(how)
        let plan = try Shell.run([BuiltMoult.path(), "plan", "--store", shop.root, shop.release(2)])
        try expectRefused(plan, why)
        try expectRefused(try shop.apply(shop.release(2)), why)
        #expect(try shop.store.lease().version == "1.0.0")
    }

    private func set(_ words: [JSON]) throws {
        try shop.set(consumers: ["name": "web", "command": ["reload": .array(words)]])
    }

    @Test func `a script that an interpreter runs counts as a program`() throws {
        try set(["sh", .string(program)])
        try setUp("chown 4001 bin/hook")
        try expectRefused(try shop.apply(shop.release(2)), "bin/hook belongs to user #4001")
    }

    @Test func `a program of root in directories of root is run`() throws {
        try set([.string(program)])
        let ended = try shop.apply(shop.release(2))
        #expect(ended.status == 0, "\(ended)")
        #expect(try Files.facts(shop.scratch.path("ran")) != nil)
    }

    @Test func `watch does not run a program that another user can change`() throws {
        try setUp("chown 4001 bin/hook")
        let generation = try shop.store.lease().generation
        #expect(try shop.apply(shop.release(2)).status == 0)
        let ended = try Shell.run([
            BuiltMoult.path(), "watch", "--store", shop.root, "--once", "--since", generation, "--exec", "--", program,
        ])
        try expectRefused(ended, "bin/hook belongs to user #4001")
    }

    @Test(arguments: ["chown 4001 bin/hook", "chown 4001 bin"])
    func `a step's program that another user can change is not run`(_ how: String) throws {
        try setUp(how)
        let ended = try Shell.run([BuiltMoult.path(), "steps", "test", program])
        #expect(ended.status != 0, "\(ended)")
        #expect(try Files.facts(shop.scratch.path("ran")) == nil)
        #expect((ended.output + ended.errors).contains("user \(how.hasSuffix("hook") ? "4001" : "#4001")"), "\(ended)")
    }

    /// In a container, the members of a group with a number but no name are unknown.
    @Test func `a group without a name counts as other users`() throws {
        try Shell.must(["chown", "-hR", "4001:4001", shop.root])
        try Shell.must(["chmod", "664", "\(shop.root)/moult.json"])
        let ended = try Shell.run([
            "setpriv", "--reuid=4001", "--regid=4001", "--clear-groups", BuiltMoult.path(), "apply", "--store",
            shop.root,
            shop.release(2),
        ])
        #expect(ended.status == 3, "\(ended)")
        #expect(ended.errors.contains("moult.json is writable by other users"), "\(ended)")
        #expect(ended.errors.contains("chmod go-w"), "\(ended)")
    }
}
