import MoultLibc
import TestSupport
import Testing

/// What users who do not own the store can do. Root may do anything, so these tests need another user.
@Suite(.tags(.thorough), .enabled(if: getuid() == 0)) struct PermissionErrorTests {
    private let world: VerbWorld
    private let other = "setpriv --reuid 65534 --regid 65534 --clear-groups bin/"

    init() throws {
        world = try VerbWorld()
        try world.install(world.first)
        try world.must("chmod 755 .; mkdir bin; cp \(try BuiltMoult.directory())/moult bin; chmod 755 bin bin/moult")
    }

    @Test(arguments: [
        (
            ":", "moult apply rel/test-2.0.0.json", "the store {dir}/store: cannot open {dir}/store/.moult/lock",
            "the user who owns the store"
        ),
        (
            ":", "moult hold --reason x", "the store {dir}/store: cannot open {dir}/store/.moult/lock",
            "the user who owns the store"
        ),
        (":", "moult init other --product a.b", "cannot create the directory {dir}/other", "user root, who owns {dir}"),
        ("chmod 700 store", "moult status", "cannot open {dir}/store/moult.json", "user root, who owns {dir}/store"),
    ])
    func `an error explains a missing permission`(prepare: String, line: String, what: String, user: String) throws {
        try world.must(prepare)
        let run = try world.run(other + line)
        #expect(run.status == 1 && run.out == "", "\(run)")
        #expect(run.err.contains("\(what): Permission denied\n".replacing("{dir}", with: world.scratch.path)), "\(run)")
        #expect(run.err.hasSuffix("as \(user).\n".replacing("{dir}", with: world.scratch.path)), "\(run)")
    }

    @Test(arguments: [
        "status", "history", "verify --deep", "plan rel/test-1.0.0.json", "sql 'SELECT * FROM food.food'", "attach",
    ])
    func `read-only verbs require no write permission`(_ line: String) throws {
        let run = try world.run("\(other)moult \(line)")
        #expect(run.status == 0 && run.err == "")
        #expect(run.out == (try world.run("moult \(line)").out))
    }
}
