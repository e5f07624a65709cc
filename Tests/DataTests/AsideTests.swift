import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// A file that SQLite cannot open is renamed into quarantine with its sidecars, and never while a process has it open.
@Suite struct AsideTests {
    let shop: Shop
    init() throws { shop = try Shop() }

    private static let names = ["app.db", "app.db-journal", "app.db-wal"]
    private static let words = ["reset", "app", "--set-user-data-aside"]

    /// Installs a release, and puts a file of an app that encrypts its database in place of the database.
    private func begin() throws {
        try shop.pack("1.0.0", [.user("CREATE TABLE note(t);", name: "app")])
        try shop.install("1.0.0")
        try Files.remove(shop.path("app.db"))
        for name in Self.names { try Files.writeNew(Array("secret \(name)".utf8), to: shop.path(name)) }
    }

    /// Returns the text of a file; nil if it is missing or is a database of moult.
    private static func text(_ path: String) throws -> String? {
        guard let size = try Files.facts(path)?.size, size < 1000 else { return nil }
        return try Files.read(path, limit: 1000).map { String(decoding: $0, as: UTF8.self) }
    }

    /// Returns the files of the app's set below a directory.
    private func set(_ directory: String) throws -> [String] {
        try Self.names.filter { try Self.text("\(directory)/\($0)") == "secret \($0)" }
    }

    private func expectReset(_ note: Comment? = nil) throws {
        #expect(try set(shop.onlyKept("app").directory) == Self.names, note)
        #expect(try shop.read("app.db", "SELECT count(*) FROM note") == "0\n", note)
    }

    /// A program that has the file open until its input ends.
    private static let holder = "import sys; f = open(sys.argv[1], 'rb'); print('open'); sys.stdin.read()"

    @Test(arguments: [[], ["unshare", "--pid", "--fork", "--mount-proc"], ["setpriv", "--reuid", "65534"]])
    func `a file that another process has open is not set aside`(through: [String]) throws {
        if !through.isEmpty, geteuid() != 0 { try Test.cancel("only root may start such a process") }
        try begin()
        try Shell.must(["chmod", "a+rx", shop.scratch.path, shop.store])
        let app = try Program(through + ["python3", "-u", "-c", Self.holder, shop.path("app.db")])
        try #require(app.line() == "open")
        let ended = try shop.moult(Self.words)
        #expect(ended.status == 75, "\(ended)")
        #expect(try set(shop.store) == Self.names)
        #expect(try shop.kept().isEmpty)
        app.closeInput()
        app.wait()
        try shop.must("reset", "app", "--set-user-data-aside")
        try expectReset()
    }

    /// A program that opens the file again and again.
    private static let opener = """
        import sys, time
        while True:
            try: open(sys.argv[1], "rb").close(); print("opened")
            except FileNotFoundError: print("missing")
            time.sleep(0.01)
        """

    /// The lease makes the opener wait, and the command moves the files back before the opener gets the file.
    @Test(arguments: 1...3) func `a process that opens the file between two renames gets it with its sidecars`(
        number: Int
    ) throws {
        try begin()
        let app = try Program(["python3", "-u", "-c", Self.opener, shop.path("app.db")])
        try #require(app.line() == "opened")
        let ended = try Shell.run(
            [
                "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=renameat2", "-e",
                "inject=renameat2:delay_exit=200000:when=\(number)", Shop.command(),
            ] + Self.words + ["--store", shop.store])
        if ended.status == 0 { return try expectReset() }
        #expect(ended.status == 75, "\(ended)")
        #expect(try set(shop.store) == Self.names)
        #expect(try shop.kept().isEmpty)
    }

    @Test(.tags(.thorough), arguments: ["recover", "recover --undo"])
    func `a kill at any rename leaves the whole set in one place`(recovery: String) throws {
        var struck = 0
        for (call, last) in [("renameat2", 20), ("fsync", 30), ("unlinkat", 20)] {
            for number in 1...last {
                let world = try AsideTests()
                try world.begin()
                let ended = try Shell.run(
                    [
                        "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(call)", "-e",
                        "inject=\(call):signal=SIGKILL:when=\(number)", Shop.command(),
                    ] + Self.words + ["--store", world.shop.store])
                if ended.status == 0 { break }
                struck += 1
                let note: Comment = "killed at \(call) number \(number)"
                let recovered = try world.shop.moult(recovery.split(separator: " ").map(String.init))
                #expect([0, 3].contains(recovered.status), "\(note): \(recovered)")
                #expect(try world.shop.moult("recover").status == 0, note)
                let place = try world.set(world.shop.store)
                let kept = try world.shop.kept("app").filter { $0.reason == "reset" }
                if place == Self.names {
                    #expect(kept.isEmpty, note)
                } else {
                    #expect(place.isEmpty, note)
                    #expect(try kept.map { try world.set($0.directory) } == [Self.names], note)
                    #expect(try world.shop.read("app.db", "SELECT count(*) FROM note") == "0\n", note)
                }
            }
        }
        #expect(struck > 10)
    }

    /// The app has emptied its -wal and removed it, and its next connection may have made another one.
    @Test(.tags(.thorough), arguments: ["new", nil], ["recover", "recover --undo"])
    func `a sidecar that an app has replaced since a kill is not joined with the file`(
        content: String?, recovery: String
    ) throws {
        var tried = 0
        for number in 1...12 {
            let world = try AsideTests()
            try world.begin()
            let ended = try Shell.run(
                [
                    "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=renameat2", "-e",
                    "inject=renameat2:signal=SIGKILL:when=\(number)", Shop.command(),
                ] + Self.words + ["--store", world.shop.store])
            if ended.status == 0 { break }
            guard let begun = try world.shop.kept("app").first, try world.set(world.shop.store) == Self.names,
                try Files.facts("\(begun.directory)/app.db-wal") != nil
            else { continue }
            tried += 1
            try Files.remove(world.shop.path("app.db-wal"))
            if let content { try Files.writeNew(Array(content.utf8), to: world.shop.path("app.db-wal")) }
            try #require(try world.shop.moult(recovery.split(separator: " ").map(String.init)).status == 0)
            let place = recovery == "recover" ? try world.shop.onlyKept("app").directory : world.shop.store
            #expect(try Self.text("\(place)/app.db") == "secret app.db")
            #expect(try Self.text("\(place)/app.db-wal") == content, "killed at rename \(number)")
            // The old one is not lost either.
            let names = try Files.list(begun.directory).map { "\(begun.directory)/\($0)" }
            #expect(try names.contains { try Self.text($0) == "secret app.db-wal" }, "\(names)")
        }
        #expect(tried > 0)
    }

    @Test func `the new file gets the owner, group and mode of the old one`() throws {
        try begin()
        try Shell.must(["chmod", "640", shop.path("app.db")])
        if geteuid() == 0 { try Shell.must(["chown", "65534:65533", shop.path("app.db")]) }
        let before = try #require(try Files.facts(shop.path("app.db")))
        try shop.must("reset", "app", "--set-user-data-aside")
        let after = try #require(try Files.facts(shop.path("app.db")))
        #expect((after.mode, after.owner, after.group) == (before.mode, before.owner, before.group))
    }
}
