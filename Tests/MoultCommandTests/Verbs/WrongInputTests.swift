import Glibc
import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Wrong input, and exactly what is said about it: what, why, what now; and the store is as before.
@Suite struct WrongInputTests {
    struct Case: CustomTestStringConvertible {
        var name: String
        /// What is made wrong first.
        var prepare: String
        var line: String
        var status: Int32
        /// `{dir}` stands for the scratch directory.
        var message: String
        var testDescription: String { name }

        init(_ name: String, _ prepare: String, _ line: String, _ status: Int32, _ message: String) {
            (self.name, self.prepare, self.line, self.status, self.message) = (name, prepare, line, status, message)
        }

        init(_ name: String, _ line: String, _ status: Int32, _ message: String) {
            self.init(name, ":", line, status, message)
        }
    }

    /// 1.0.0 is installed; 2.0.0 is what is wrong.
    static let cases = [
        Case(
            "missing manifest", "moult apply rel/none.json", 1,
            """
            there is no manifest at {dir}/rel/none.json: no such file
              Name the sealed manifest of a release, such as releases/app-1.0.0.json.
            """),
        Case(
            "missing bundle", "rm rel/test-2.0.0.tar.zst", "moult apply rel/test-2.0.0.json", 1,
            """
            the bundle {dir}/rel/test-2.0.0.tar.zst is missing: the manifest names it, and no file is there
              Put the bundle beside its manifest.
            """),
        Case(
            "manifest that is no JSON", "echo '{\"manifest\": 1,}' > rel/test-2.0.0.json",
            "moult apply rel/test-2.0.0.json", 1,
            """
            rel/test-2.0.0.json is not valid JSON: line 1, column 16: a comma before '}' is not plain JSON
            """),
        Case(
            "unknown manifest format", "sed -i 's/\"manifest\": 1/\"manifest\": 9/' rel/test-2.0.0.json",
            "moult apply rel/test-2.0.0.json", 1,
            """
            rel/test-2.0.0.json: manifest is format 9, and this moult reads format 1
              Install a newer moult.
            """),
        Case(
            "other product", "sed -i 's/org.example.test/org.example.other/' rel/test-2.0.0.json",
            "moult apply rel/test-2.0.0.json", 3,
            """
            rel/test-2.0.0.json is a release of org.example.other: the store {dir}/store holds org.example.test
              Use the store of that product.
            """),
        Case(
            "downgrade", "moult apply -q rel/test-2.0.0.json", "moult apply rel/test-1.0.0.json", 3,
            """
            release 1.0.0 is older than the installed 2.0.0: this store follows only upward
              If you mean it: moult apply --allow-downgrade, or go back with: moult rollback
            """),
        Case(
            "not a store", "moult status --store rel", 1,
            """
            {dir}/rel is no store: there is no moult.json in it
              Make one with: moult init {dir}/rel --product NAME
            """),
        Case(
            "no store here", "cd rel; moult status", 1,
            """
            no store is named, and there is none here: neither ./moult.json nor ./store/moult.json is there
              Name one with --store DIR or MOULT_STORE, or make one with moult init.
            """),
        Case(
            "store twice", "moult init --product org.example.test", 3,
            """
            {dir}/store is a store already: {dir}/store/moult.json is there
              Change that file, or name another directory.
            """),
        Case(
            "store below nothing", "moult init a/b --product org.example.test", 1,
            """
            cannot create the directory {dir}/a/b: No such file or directory
              Make the directory above it first.
            """),
        Case(
            "wrong settings", "sed -i 's/\"newer\"/\"never\"/' store/moult.json", "moult apply rel/test-2.0.0.json", 1,
            """
            {dir}/store/moult.json: follow must be one of "newer", "match", is "never"
              Did you mean "newer"?
            """),
        Case(
            "nothing to go back to", "moult rollback", 3,
            """
            there is nothing to roll back to: {generation} is the only generation of {dir}/store
              Bring an older release in: moult apply MANIFEST --allow-downgrade
            """),
        Case(
            "unknown generation", "moult apply -q rel/test-2.0.0.json", "moult rollback --to 9.9.9", 3,
            """
            there is no kept generation 9.9.9: those kept are {generation}
              Name one of them: moult rollback --to GENERATION
            """),
        Case(
            "missing plan", "moult apply --plan p", 1,
            """
            there is no plan at p: no such file
              Make one with: moult plan --out FILE MANIFEST
            """),
        Case(
            "something else than a plan", "moult apply --plan rel/test-1.0.0.json", 1,
            """
            rel/test-1.0.0.json is no plan: format is missing
              Make a new one with: moult plan --out FILE MANIFEST
            """),
        Case(
            "app that is too old", "sed -i 's/\"sequence\"/\"requires\": {\"app\": \">=3.2\"}, &/' rel/test-2.0.0.json",
            "moult apply rel/test-2.0.0.json --app 3.1.0", 3,
            """
            release 2.0.0 requires app >=3.2: the app is 3.1.0
              Update the app first.
            """),
        Case(
            "app that nobody knows",
            "sed -i 's/\"sequence\"/\"requires\": {\"app\": \">=3.2\"}, &/' rel/test-2.0.0.json",
            "moult apply rel/test-2.0.0.json", 3,
            """
            release 2.0.0 requires app >=3.2: this store does not say which version the app has
              Say it with --app VERSION, or set "app" in moult.json.
            """),
    ]

    private func expect(_ wrong: Case, in world: World, _ run: (status: Int32, out: String, err: String)) throws {
        #expect(run.status == wrong.status)
        #expect(run.out == "")
        let message = wrong.message.replacing("{dir}", with: world.scratch.directory)
            .replacing("{generation}", with: try world.generation(world.first))
        #expect(run.err == "moult: error: \(message)\n")
    }

    @Test(arguments: cases) func isRefused(_ wrong: Case) throws {
        let world = try World()
        try world.install(world.first)
        try world.must(wrong.prepare)
        let tree = try world.tree
        try expect(wrong, in: world, world.run(wrong.line))
        #expect(try world.tree == tree)
    }

    /// Root may do anything, so somebody else is needed to be refused.
    @Test(
        .enabled(if: getuid() == 0),
        arguments: [
            Case(
                "apply", "moult apply rel/test-2.0.0.json", 1,
                """
                you may not change the store {dir}/store: cannot open {dir}/store/.moult/lock: Permission denied
                  Run this as the user who owns the store.
                """),
            Case(
                "hold", "moult hold --reason x", 1,
                """
                you may not change the store {dir}/store: cannot open {dir}/store/.moult/lock: Permission denied
                  Run this as the user who owns the store.
                """),
            Case(
                "init", "moult init other --product a.b", 1,
                """
                cannot create the directory {dir}/other: Permission denied
                  Check owner and mode of the file and of the directories above it.
                """),
            Case(
                "locked away", "chmod 700 store", "moult status", 1,
                """
                cannot open {dir}/store/moult.json: Permission denied
                  Check owner and mode of the file and of the directories above it.
                """),
        ])
    func withoutPermission(_ wrong: Case) throws {
        let world = try World()
        try world.install(world.first)
        try world.must(
            "chmod 755 .; mkdir bin; cp \(Scratch.built)/moult bin; chmod 755 bin bin/moult; \(wrong.prepare)")
        let other = "setpriv --reuid 65534 --regid 65534 --clear-groups bin/"
        try expect(wrong, in: world, world.run(other + wrong.line))
    }

    /// To look is allowed to whoever may read.
    @Test(
        .enabled(if: getuid() == 0),
        arguments: [
            "status", "history", "verify --deep", "plan rel/test-1.0.0.json", "sql 'SELECT * FROM food.food'", "attach",
        ])
    func lookingNeedsNoPermissionToWrite(_ line: String) throws {
        let world = try World()
        try world.install(world.first)
        try world.must("chmod 755 .; mkdir bin; cp \(Scratch.built)/moult bin; chmod 755 bin bin/moult")
        let run = try world.run("setpriv --reuid 65534 --regid 65534 --clear-groups bin/moult \(line)")
        #expect(run.status == 0)
        #expect(run.err == "")
        #expect(run.out == (try world.run("moult \(line)").out))
    }
}
