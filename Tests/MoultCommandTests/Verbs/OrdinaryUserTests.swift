import Moult
import MoultFiles
import MoultLibc
import Testing

/// For users other than root, modes matter: they cannot move or repair a read-only directory before they change its
/// mode.
@Suite struct OrdinaryUserTests {
    private let world: VerbWorld

    init() throws {
        world = try VerbWorld()
        if geteuid() == 0 { try world.must("cp $(command -v moult) . && chmod 755 . && chown -R 65534:65534 .") }
        #expect(try run("moult init -q --product org.example.test && moult apply -q \(world.first)") == 0)
        #expect(
            try run("printf x | dd of=store/food.db bs=1 seek=5000 conv=notrunc status=none") != 0,
            "food.db is writable")
        #expect(
            try run("chmod u+w store/food.db && printf x | dd of=store/food.db bs=1 seek=5000 conv=notrunc status=none")
                == 0)
        #expect(try run("moult verify -q") == 1)
    }

    private func run(_ line: String) throws -> Int32 {
        let user = geteuid() == 0 ? "setpriv --reuid=65534 --regid=65534 --clear-groups env PATH=\"$PWD:$PATH\" " : ""
        return try world.run("\(user)bash -c '\(line)'").status
    }

    private func mode() throws -> UInt32? {
        try Files.facts(world.layout.generation(world.generation(world.first)))?.mode
    }

    @Test func `an ordinary user can repair a damaged generation`() throws {
        #expect(try run("moult apply -q \(world.first)") == 0)
        #expect(try run("moult verify -q --deep") == 0)
        #expect(try mode() == 0o555)
    }

    /// Until the mode is corrected, moult cannot create the link, so the repair is refused before anything is changed.
    @Test func `a repair that an ordinary user cannot complete is refused`() throws {
        #expect(try run("rm store/food.db && chmod u-w store") == 0)
        #expect(try run("moult apply -q \(world.first)") == 1)
        #expect(try run("chmod u+w store && moult recover -q") == 0)
        #expect(try mode() == 0o555)
        #expect(try run("moult verify -q") == 1)
        #expect(try run("moult apply -q \(world.first) && moult verify -q --deep") == 0)
        #expect(
            try run("moult apply -q \(world.second) && moult rollback -q && moult clean -q && moult verify -q") == 0)
    }
}
